//! Operations of the kernel itself, for tasks with the privilege.

use abi::call::{Call, kernel_op};
use abi::code::check;
use abi::stats::{Counters, FrameCensus, TaskStatus};
use abi::{Code, KernelError};
use zerocopy::IntoBytes;

use crate::arch::syscall;

fn operation(number: u32, argument: usize, buffer: &mut [u8]) -> Result<usize, KernelError> {
    let args = [number as usize, argument, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0, 0];
    let result = syscall(Call::Kernel, args);
    check(result[0] as Code)?;
    Ok(result[1])
}

/// State, generation and last fault of a task. Needs `stats`.
///
/// # Errors
/// [`KernelError::NoPrivilege`], [`KernelError::BadArgument`] for an unknown task.
pub fn task_status(task: u8) -> Result<TaskStatus, KernelError> {
    let mut buffer = [0; 96];
    let len = operation(kernel_op::TASK_STATUS, task as usize, &mut buffer)?;
    postcard::from_bytes(&buffer[..len]).map_err(|_| KernelError::BadArgument)
}

/// Counters of a task. Needs `stats`.
///
/// # Errors
/// As [`task_status`].
pub fn counters(task: u8) -> Result<Counters, KernelError> {
    let mut counters = Counters::default();
    operation(kernel_op::COUNTERS, task as usize, counters.as_mut_bytes())?;
    Ok(counters)
}

/// Where the frames of a pool are. Needs `stats`.
///
/// # Errors
/// As [`task_status`].
pub fn frame_census(pool: usize) -> Result<FrameCensus, KernelError> {
    let mut buffer = [0; 32];
    let len = operation(kernel_op::FRAME_CENSUS, pool, &mut buffer)?;
    postcard::from_bytes(&buffer[..len]).map_err(|_| KernelError::BadArgument)
}

/// The message of a task's last panic; returns its length in `buffer`. Needs `stats`.
///
/// # Errors
/// As [`task_status`].
pub fn panic_message(task: u8, buffer: &mut [u8]) -> Result<usize, KernelError> {
    operation(kernel_op::PANIC_MESSAGE, task as usize, buffer)
}

/// Starts a task anew, in the next generation. Needs `supervise`.
///
/// # Errors
/// As [`task_status`].
pub fn restart(task: u8) -> Result<(), KernelError> {
    operation(kernel_op::RESTART, task as usize, &mut []).map(drop)
}

/// Stops a task until it is restarted. Needs `supervise`.
///
/// # Errors
/// As [`task_status`].
pub fn stop(task: u8) -> Result<(), KernelError> {
    operation(kernel_op::STOP, task as usize, &mut []).map(drop)
}

/// Faults a task as if it had failed by itself. Needs `inject`.
///
/// # Errors
/// As [`task_status`].
pub fn inject_fault(task: u8) -> Result<(), KernelError> {
    operation(kernel_op::FAULT, task as usize, &mut []).map(drop)
}

/// The next faulted task at or after index `from`. Needs `supervise`.
///
/// # Errors
/// [`KernelError::NoPrivilege`].
pub fn next_faulted(from: u8) -> Result<Option<u8>, KernelError> {
    let found = operation(kernel_op::NEXT_FAULTED, from as usize, &mut [])?;
    Ok((found != kernel_op::NO_TASK).then_some(found as u8))
}

/// Powers the board off. Needs `power`; returns only if that is missing.
pub fn power_off() -> KernelError {
    operation(kernel_op::POWER, 0, &mut []).err().unwrap_or(KernelError::BadArgument)
}

/// Resets the board. Needs `power`; returns only if that is missing.
pub fn reset() -> KernelError {
    operation(kernel_op::POWER, 1, &mut []).err().unwrap_or(KernelError::BadArgument)
}

/// Writes to the kernel's polled console: slow, for the last words of a system. Needs `log`.
///
/// # Errors
/// [`KernelError::NoPrivilege`].
pub fn log(text: &str) -> Result<(), KernelError> {
    check(syscall(Call::Log, [text.as_ptr() as usize, text.len(), 0, 0, 0, 0, 0, 0])[0] as Code).map(drop)
}

#[cfg(target_os = "none")]
pub(crate) fn panic(message: &str) -> ! {
    loop {
        syscall(Call::Panic, [message.as_ptr() as usize, message.len(), 0, 0, 0, 0, 0, 0]);
    }
}

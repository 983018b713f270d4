//! Does what the self-tests tell it, and dies of it.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

mod arch;
mod perform;

use userlib::abi::call::{Call, RecvArgs};
use userlib::memory::DmaWords;
use userlib::{config, ipc};
use victim::{FRAMES, MESSAGE, MESSAGE_LEN, Window, operation};

#[cfg(target_os = "none")]
userlib::entry!(main);

/// The host has nobody to be the victim of.
#[cfg(not(target_os = "none"))]
fn main() {
    let _: fn() -> ! = live;
}

#[cfg(target_os = "none")]
fn main() -> ! {
    live()
}

fn live() -> ! {
    let window = DmaWords::take("suite").expect("a window: name this task under `windows` of the suite");
    let mut window = Window::new(window);
    match config::find_slot("suite") {
        Some(suite) => ask(suite, &mut window),
        None => serve(&mut window),
    }
}

fn run(window: &mut Window, steps: usize) {
    for index in 0..steps.min(victim::MAX_STEPS) {
        let results = perform::step(window.step(index));
        window.finish(index, results);
    }
}

/// Below the suite: asks it for work.
fn ask(suite: u8, window: &mut Window) -> ! {
    loop {
        let (steps, _) = ipc::send(ipc::current_id(suite), operation::NEXT, &[], &mut [], &[], None);
        // A kernel's code: the suite died, and its next instance will answer.
        if steps <= victim::MAX_STEPS as u32 {
            run(window, steps as usize);
        }
    }
}

/// Above the suite: takes its messages.
fn serve(window: &mut Window) -> ! {
    loop {
        let receive = RecvArgs {
            buffer: window.address() as usize + MESSAGE,
            capacity: MESSAGE_LEN,
            frames: window.address() as usize + FRAMES,
            frame_capacity: 32,
            ..RecvArgs::default()
        };
        let received = arch::syscall(Call::Recv as u64, [&raw const receive as u64, 0, 0, 0, 0, 0, 0, 0]);
        let reply = || arch::syscall(Call::Reply as u64, [received[0], 0, 0, 0, 0, 0, 0, 0]);
        let steps = window.get(MESSAGE) as u8;
        if received[1] == u64::from(operation::DETACH) {
            reply();
            run(window, steps.into());
        } else {
            run(window, steps.into());
            // A script that has replied by itself leaves nobody to reply to.
            reply();
        }
    }
}

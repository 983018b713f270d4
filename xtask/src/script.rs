//! Linker scripts: one per task and one for the kernel, for addresses that the memory plan chose.

/// Distance from physical addresses to the kernel's own (AArch64).
pub const KERNEL_OFFSET: u64 = 0xffff_ff80_0000_0000;

/// Where the parts of a task go. All addresses are multiples of the page size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskPlace {
    /// Code.
    pub text: u64,
    /// Constants, and behind them what `.data` starts with.
    pub rodata: u64,
    /// Variables.
    pub data: u64,
    /// The configuration page.
    pub config: u64,
}

/// Where the parts of the kernel go. Physical addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelPlace {
    /// First address of the image; a multiple of the page size.
    pub base: u64,
    /// Bytes of the kernel's stack.
    pub stack: u64,
    /// The image table: first address, bytes.
    pub table: (u64, u64),
}

/// Sections that no loaded part needs.
const DISCARD: &str = "/DISCARD/ : { *(.eh_frame .eh_frame_hdr .note .note.*) }";

/// The script of a task.
///
/// `.data` runs at its place, and is loaded behind the constants: the start-up code copies it, on each start.
#[must_use]
pub fn task(place: &TaskPlace) -> String {
    let TaskPlace {
        text,
        rodata,
        data,
        config,
    } = place;
    format!(
        "ENTRY(_start)
PHDRS {{ text PT_LOAD FLAGS(5); rodata PT_LOAD FLAGS(4); data PT_LOAD FLAGS(6); bss PT_LOAD FLAGS(6); }}
SECTIONS {{
  .text {text:#x} : {{ KEEP(*(.text.start)) *(.text .text.*) }} :text
  .rodata {rodata:#x} : {{ *(.rodata .rodata.* .data.rel.ro .data.rel.ro.*) . = ALIGN(8); }} :rodata
  __data_load = .;
  .data {data:#x} : AT(__data_load) {{ __data_start = .; *(.data .data.* .got .got.plt) . = ALIGN(8); __data_end = .; }} :data
  .bss (NOLOAD) : ALIGN(8) {{ __bss_start = .; *(.bss .bss.* COMMON) . = ALIGN(8); __bss_end = .; }} :bss
  __config = {config:#x};
  {DISCARD}
}}
"
    )
}

/// The script of the kernel: linked high, loaded low.
///
/// The parts follow each other on page boundaries; the stack has an unused page below it, and is last.
#[must_use]
pub fn kernel(place: &KernelPlace) -> String {
    let KernelPlace {
        base,
        stack,
        table: (table, table_size),
    } = place;
    format!(
        "ENTRY(_start)
PHDRS {{ text PT_LOAD FLAGS(5); rodata PT_LOAD FLAGS(4); data PT_LOAD FLAGS(6); }}
OFFSET = {KERNEL_OFFSET:#x};
SECTIONS {{
  . = OFFSET + {base:#x};
  __kernel_text_start = .;
  .text : AT(ADDR(.text) - OFFSET) {{ KEEP(*(.text.boot)) *(.text.vectors) *(.text .text.*) }} :text
  . = ALIGN(4096);
  __kernel_text_end = .;
  __kernel_rodata_start = .;
  .rodata : AT(ADDR(.rodata) - OFFSET) {{ *(.rodata .rodata.* .data.rel.ro .data.rel.ro.*) }} :rodata
  . = ALIGN(4096);
  __kernel_rodata_end = .;
  __kernel_data_start = .;
  .data : AT(ADDR(.data) - OFFSET) {{ *(.data .data.* .got .got.plt) . = ALIGN(16); }} :data
  .bss (NOLOAD) : ALIGN(16) {{ __bss_start = .; *(.bss .bss.* COMMON) . = ALIGN(16); __bss_end = .; }} :data
  . = ALIGN(4096) + 4096;
  .stack (NOLOAD) : {{ . += {stack:#x}; }} :data
  . = ALIGN(4096);
  __stack_top = .;
  __kernel_data_end = .;
  __image_table = OFFSET + {table:#x};
  __image_table_end = OFFSET + {table:#x} + {table_size:#x};
  {DISCARD}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_every_symbol_of_the_start_up_code() {
        let script = task(&TaskPlace {
            text: 0x1000,
            rodata: 0x3000,
            data: 0x4000,
            config: 0x6000,
        });
        for symbol in [
            "__data_start",
            "__data_end",
            "__data_load",
            "__bss_start",
            "__bss_end",
            "__config",
        ] {
            assert_eq!(
                script.matches(&format!("{symbol} =")).count(),
                1,
                "{symbol}"
            );
        }
        for place in [
            ".text 0x1000 :",
            ".rodata 0x3000 :",
            ".data 0x4000 : AT(__data_load)",
            "__config = 0x6000;",
        ] {
            assert!(script.contains(place), "{place} is not in\n{script}");
        }
    }

    #[test]
    fn the_kernel_is_linked_high() {
        let script = kernel(&KernelPlace {
            base: 0x20_0000,
            stack: 0x8000,
            table: (0x30_0000, 0x1000),
        });
        assert!(script.contains("OFFSET = 0xffffff8000000000;"));
        assert!(script.contains("__image_table = OFFSET + 0x300000;"));
        for part in ["text", "rodata", "data"] {
            assert!(
                script.contains(&format!("__kernel_{part}_start ="))
                    && script.contains(&format!("__kernel_{part}_end =")),
                "{part}"
            );
        }
    }
}

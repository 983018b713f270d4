//! Linker scripts: one per task and one for the kernel, for addresses that the memory plan chose.

use manifest::{KernelPlacement, TaskPlacement};

/// Distance from physical addresses to the kernel's own (AArch64).
pub const KERNEL_OFFSET: u64 = 0xffff_ff80_0000_0000;

/// Sections that no loaded part needs.
const DISCARD: &str = "/DISCARD/ : { *(.eh_frame .eh_frame_hdr .note .note.*) }";

/// The script of a task.
///
/// `.data` runs at its place, and is loaded behind the constants: the start-up code copies it, on each start.
#[must_use]
pub fn task(place: &TaskPlacement) -> String {
    let (text, rodata, data, config) = (place.text.base, place.rodata.base, place.data.base, place.config.base);
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
#[must_use]
pub fn kernel(place: &KernelPlacement) -> String {
    let (text, rodata, data) = (place.text.base, place.rodata.base, place.data.base);
    let (stack, table, table_end) = (place.stack.end(), place.table.base, place.table.end());
    format!(
        "ENTRY(_start)
PHDRS {{ text PT_LOAD FLAGS(5); rodata PT_LOAD FLAGS(4); data PT_LOAD FLAGS(6); }}
OFFSET = {KERNEL_OFFSET:#x};
SECTIONS {{
  .text OFFSET + {text:#x} : AT({text:#x}) {{
    __kernel_text_start = .; KEEP(*(.text.boot)) *(.text.vectors) *(.text .text.*) __kernel_text_end = .;
  }} :text
  .rodata OFFSET + {rodata:#x} : AT({rodata:#x}) {{
    __kernel_rodata_start = .; *(.rodata .rodata.* .data.rel.ro .data.rel.ro.*) __kernel_rodata_end = .;
  }} :rodata
  .data OFFSET + {data:#x} : AT({data:#x}) {{
    __kernel_data_start = .; __data_start = .; *(.data .data.* .got .got.plt) . = ALIGN(16); __data_end = .;
  }} :data
  .bss (NOLOAD) : ALIGN(16) {{ __bss_start = .; *(.bss .bss.* COMMON) . = ALIGN(16); __bss_end = .; }} :data
  __kernel_data_end = .;
  __stack_top = OFFSET + {stack:#x};
  __image_table = OFFSET + {table:#x};
  __image_table_end = OFFSET + {table_end:#x};
  {DISCARD}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::Span;

    const fn span(base: u64) -> Span {
        Span { base, size: 0x1000 }
    }

    #[test]
    fn a_task_has_every_symbol_of_the_start_up_code() {
        let place = TaskPlacement {
            text: span(0x1000),
            rodata: span(0x3000),
            data: span(0x4000),
            config: span(0x6000),
            ..Default::default()
        };
        let script = task(&place);
        for symbol in ["__data_start", "__data_end", "__data_load", "__bss_start", "__bss_end", "__config"] {
            assert_eq!(script.matches(&format!("{symbol} =")).count(), 1, "{symbol}");
        }
        for place in [".text 0x1000 :", ".rodata 0x3000 :", ".data 0x4000 : AT(__data_load)", "__config = 0x6000;"] {
            assert!(script.contains(place), "{place} is not in\n{script}");
        }
    }

    #[test]
    fn the_kernel_is_linked_high_and_loaded_low() {
        let place = KernelPlacement {
            text: span(0x20_0000),
            stack: span(0x22_0000),
            table: span(0x30_0000),
            ..Default::default()
        };
        let script = kernel(&place);
        for line in [
            "OFFSET = 0xffffff8000000000;",
            ".text OFFSET + 0x200000 : AT(0x200000)",
            "__stack_top = OFFSET + 0x221000;",
            "__image_table = OFFSET + 0x300000;",
            "__image_table_end = OFFSET + 0x301000;",
        ] {
            assert!(script.contains(line), "{line} is not in\n{script}");
        }
        for part in ["text", "rodata", "data"] {
            assert!(
                script.contains(&format!("__kernel_{part}_start ="))
                    && script.contains(&format!("__kernel_{part}_end =")),
                "{part}"
            );
        }
    }
}

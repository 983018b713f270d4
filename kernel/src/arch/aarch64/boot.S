// Entry, exception vectors and the way back to user code.
//
// The image is loaded and entered at its physical address, linked at KERNEL_OFFSET + physical. Nothing here
// uses an absolute address before the jump to the upper half.

    .equ KERNEL_OFFSET_HIGH, 0xff80          // bits 47..32 of the offset; bits 63..48 are ones

    .pushsection .text.boot, "ax"
    .global _start
_start:
    msr  daifset, #0xf
    // EL2: configure EL1 and drop to it (Arm ARM D1.4; HCR_EL2.RW, no traps, no timer offset).
    mrs  x0, CurrentEL
    lsr  x0, x0, #2
    cmp  x0, #2
    b.ne 1f
    mov  x0, #(1 << 31)
    msr  hcr_el2, x0
    mov  x0, #3
    msr  cnthctl_el2, x0
    msr  cntvoff_el2, xzr
    mov  x0, #0x33ff
    msr  cptr_el2, x0
    mrs  x0, mdcr_el2
    bic  x0, x0, #0x60                       // TPM, TPMCR: let EL1 use the counters
    msr  mdcr_el2, x0
    ldr  x0, =0x30d00800                     // SCTLR_EL1 reset value: RES1 bits, MMU off
    msr  sctlr_el1, x0
    mov  x0, #0x3c5
    msr  spsr_el2, x0
    adr  x0, 1f
    msr  elr_el2, x0
    eret

1:  // Clear .bss, boot tables included. Its bounds are virtual; adrp gives physical addresses here.
    adrp x0, __bss_start
    adrp x1, __bss_end
2:  cmp  x0, x1
    b.hs 3f
    stp  xzr, xzr, [x0], #16
    b    2b

3:  // First tables: the GiB that holds the kernel, once in the lower half, once in the upper.
    adrp x1, boot_table
    adr  x2, _start
    lsr  x3, x2, #30                         // index of the GiB
    lsl  x4, x3, #30
    mov  x5, #0x705                          // block, normal memory (index 1), inner shareable, accessed
    orr  x4, x4, x5
    str  x4, [x1, x3, lsl #3]
    ldr  x5, =MAIR_VALUE
    msr  mair_el1, x5
    ldr  x5, =TCR_VALUE
    msr  tcr_el1, x5
    msr  ttbr0_el1, x1
    msr  ttbr1_el1, x1
    dsb  sy
    isb
    tlbi vmalle1
    ic   iallu
    dsb  sy
    isb
    ldr  x5, =SCTLR_VALUE
    msr  sctlr_el1, x5
    isb

    // To the upper half.
    ldr  x5, =__stack_top
    mov  sp, x5
    ldr  x5, =vectors
    msr  vbar_el1, x5
    isb
    ldr  x5, =kernel_main
    br   x5
    .ltorg

    // void install_kernel_table(x0 = physical table). Runs in the lower half while TTBR1 changes, so that no
    // translation of the old table can meet one of the new.
    .global install_kernel_table_low
install_kernel_table_low:
    msr  ttbr1_el1, x0
    isb
    tlbi vmalle1
    dsb  ish
    isb
    ret
    .popsection

    .pushsection .bss.boot_table, "aw", @nobits
    .balign 4096
    .global boot_table
boot_table:
    .skip 4096
    .popsection

// Offsets in `Context`.
    .equ CONTEXT_SP, 31 * 8
    .equ CONTEXT_SPSR, 33 * 8

    .pushsection .text.vectors, "ax"

// While user code runs, SP_EL1 points at its `Context`. Saves all integer registers there and changes to the kernel stack.
// The handlers return the `Context` to continue with.
.macro enter handler
    stp  x0, x1, [sp, #0]
    stp  x2, x3, [sp, #16]
    stp  x4, x5, [sp, #32]
    stp  x6, x7, [sp, #48]
    stp  x8, x9, [sp, #64]
    stp  x10, x11, [sp, #80]
    stp  x12, x13, [sp, #96]
    stp  x14, x15, [sp, #112]
    stp  x16, x17, [sp, #128]
    stp  x18, x19, [sp, #144]
    stp  x20, x21, [sp, #160]
    stp  x22, x23, [sp, #176]
    stp  x24, x25, [sp, #192]
    stp  x26, x27, [sp, #208]
    stp  x28, x29, [sp, #224]
    mrs  x2, sp_el0
    mrs  x3, elr_el1
    mrs  x4, spsr_el1
    stp  x30, x2, [sp, #240]
    stp  x3, x4, [sp, #256]
    adrp x1, __stack_top
    add  x1, x1, :lo12:__stack_top
    mov  sp, x1
    bl   \handler
    b    resume
.endm

    .balign 128
    // x0: the `Context` to continue with.
    .global resume
resume:
    mov  sp, x0
    ldp  x3, x4, [sp, #256]
    ldp  x30, x2, [sp, #240]
    msr  sp_el0, x2
    msr  elr_el1, x3
    msr  spsr_el1, x4
    ldp  x28, x29, [sp, #224]
    ldp  x26, x27, [sp, #208]
    ldp  x24, x25, [sp, #192]
    ldp  x22, x23, [sp, #176]
    ldp  x20, x21, [sp, #160]
    ldp  x18, x19, [sp, #144]
    ldp  x16, x17, [sp, #128]
    ldp  x14, x15, [sp, #112]
    ldp  x12, x13, [sp, #96]
    ldp  x10, x11, [sp, #80]
    ldp  x8, x9, [sp, #64]
    ldp  x6, x7, [sp, #48]
    ldp  x4, x5, [sp, #32]
    ldp  x2, x3, [sp, #16]
    ldp  x0, x1, [sp, #0]
    eret

// A trap out of the kernel itself: nothing can be saved, so say where and stop.
.macro kernel_trap
    adrp x1, __stack_top
    add  x1, x1, :lo12:__stack_top
    mov  sp, x1
    mrs  x0, esr_el1
    mrs  x1, elr_el1
    mrs  x2, far_el1
    bl   kernel_trapped
.endm

user_sync:
    enter on_synchronous
user_irq:
    enter on_interrupt
user_serror:
    enter on_system_error
trapped:
    kernel_trap

    .balign 2048
    .global vectors
vectors:
    // Current EL, SP_EL0 (never used) and SP_ELx (a bug in the kernel).
    .rept 8
    b    trapped
    .balign 128
    .endr
    b    user_sync
    .balign 128
    b    user_irq
    .balign 128
    b    user_serror                         // FIQ: no group 0 interrupt is configured
    .balign 128
    b    user_serror
    .balign 128
    // 32-bit user code: not built, cannot happen.
    .rept 4
    b    trapped
    .balign 128
    .endr
    .popsection

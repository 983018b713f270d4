// Memory functions of the kernel, which may not use vector registers.
// Registers: x0 = to, x1 = from, x2 = bytes; clobber x3..x10. Regions do not overlap in memcpy.
    .pushsection .text.memcpy, "ax"
    .global memcpy
    .type memcpy, %function
    .balign 16
memcpy:
    mov  x3, x0
    subs x2, x2, #64
    b.lo 2f
1:  ldp  x4, x5, [x1], #16
    ldp  x6, x7, [x1], #16
    ldp  x8, x9, [x1], #16
    ldp  x10, x11, [x1], #16
    stp  x4, x5, [x3], #16
    stp  x6, x7, [x3], #16
    stp  x8, x9, [x3], #16
    stp  x10, x11, [x3], #16
    subs x2, x2, #64
    b.hs 1b
    // Below 64 left: bits 5 to 0 of the count say which pieces.
2:  tbz  x2, #5, 3f
    ldp  x4, x5, [x1], #16
    ldp  x6, x7, [x1], #16
    stp  x4, x5, [x3], #16
    stp  x6, x7, [x3], #16
3:  tbz  x2, #4, 4f
    ldp  x4, x5, [x1], #16
    stp  x4, x5, [x3], #16
4:  tbz  x2, #3, 5f
    ldr  x4, [x1], #8
    str  x4, [x3], #8
5:  tbz  x2, #2, 6f
    ldr  w4, [x1], #4
    str  w4, [x3], #4
6:  tbz  x2, #1, 7f
    ldrh w4, [x1], #2
    strh w4, [x3], #2
7:  tbz  x2, #0, 8f
    ldrb w4, [x1]
    strb w4, [x3]
8:  ret
    .size memcpy, . - memcpy
    .popsection

// void *memcpy(x0 = to, x1 = from, x2 = bytes); clobbers x3, x4, v0..v3.
// Lengths below 16 go by halves, the rest as overlapping 16-byte ends around 64-byte turns, so there is no byte loop.
    .pushsection .text.memcpy, "ax"
    .global memcpy
    .type memcpy, %function
    .balign 16
memcpy:
    mov  x3, x0
    cmp  x2, #64
    b.hs 3f
    cmp  x2, #16
    b.lo 1f
    add  x4, x1, x2
    ldr  q3, [x4, #-16]
    add  x4, x0, x2
    tbz  x2, #5, 2f
    ldp  q0, q1, [x1], #32
    stp  q0, q1, [x3], #32
2:  tbz  x2, #4, 4f
    ldr  q0, [x1]
    str  q0, [x3]
4:  str  q3, [x4, #-16]
    ret
1:  tbz  x2, #3, 5f
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
    // 64 bytes or more: the last 64 are stored last, from registers read at the end of the loop.
3:  add  x4, x1, x2
    sub  x4, x4, #64
    sub  x2, x2, #64
    cbz  x2, 10f
9:  ldp  q0, q1, [x1], #32
    ldp  q2, q3, [x1], #32
    stp  q0, q1, [x3], #32
    stp  q2, q3, [x3], #32
    subs x2, x2, #64
    b.hi 9b
    add  x3, x3, x2
10: ldp  q0, q1, [x4]
    ldp  q2, q3, [x4, #32]
    stp  q0, q1, [x3]
    stp  q2, q3, [x3, #32]
    ret
    .size memcpy, . - memcpy
    .popsection

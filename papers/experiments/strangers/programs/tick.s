# A boot sector: the timer's interrupt works for a while and tells of it on the debug console, 100 times a second.
.code16
.globl _start
_start:
    cli
    xor %ax, %ax
    mov %ax, %ds
    movw $tick, 0x20
    movw %ax, 0x22
    mov $0x34, %al
    out %al, $0x43
    mov $11932 & 255, %al
    out %al, $0x40
    mov $11932 >> 8, %al
    out %al, $0x40
    sti
idle:
    hlt
    jmp idle
tick:
    mov $200000, %ecx
work:
    dec %ecx
    jnz work
    mov $'.', %al
    out %al, $0xe9
    mov $'\n', %al
    out %al, $0xe9
    mov $0x20, %al
    out %al, $0x20
    iret
.org 510
.word 0xaa55

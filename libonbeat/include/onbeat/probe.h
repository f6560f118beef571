/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The instructions that a probe stands on.
 *
 * On x86-64 one of one byte and one of five that do nothing: tools since ever set a breakpoint on
 * the first, and kernels since 6.18 turn the second into a call, at a fraction of a breakpoint's
 * cost. Only the probes of this library are so; those of the program that includes it stay what
 * <sys/sdt.h> makes of them.
 *
 * That call uses the stack below the stack pointer, where a function that calls nothing may keep
 * its variables (the red zone of the x86-64 ABI). So each probe is in a function of its own, which
 * has nothing there but its arguments if it is not optimised; and these are read from registers.
 */
#ifndef ONBEAT_PROBE_H
#define ONBEAT_PROBE_H

#include <sys/sdt.h>

#ifndef ONBEAT_PROBE_NOP
#if defined(__x86_64__) && defined(__LP64__)
#define ONBEAT_PROBE_NOP \
	nop;             \
	.byte 0x0f;      \
	.byte 0x1f;      \
	.byte 0x44;      \
	.byte 0x00;      \
	.byte 0x00
#elif defined(__s390__)
#define ONBEAT_PROBE_NOP nop 0
#else
#define ONBEAT_PROBE_NOP nop
#endif
#endif

#define ONBEAT_PROBE_ARGUMENTS nr
#define ONBEAT_PROBE static __attribute__((noinline, unused))

#endif

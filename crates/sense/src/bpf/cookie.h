/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The content of a probe's cookie: which call of libonbeat's stands there, and where its two
 * arguments are. The other half is probes.rs. So nothing is kept of a probe in a map, which
 * programs with many of them could fill.
 */
#ifndef ONBEAT_COOKIE_H
#define ONBEAT_COOKIE_H

/* The kind, then the arguments. */
#define COOKIE_KIND_BITS 4
#define COOKIE_FIRST_BITS 36
#define COOKIE_SECOND_BITS 24

/* Filled in by libbpf: true since 5.15. Before, no program can be attached with a cookie. */
extern const _Bool LINUX_HAS_BPF_COOKIE __kconfig __weak;

static __always_inline u64 cookie_of(struct pt_regs *ctx)
{
	return LINUX_HAS_BPF_COOKIE ? bpf_get_attach_cookie(ctx) : 0;
}

static __always_inline u32 cookie_kind(u64 cookie)
{
	return cookie & ((1 << COOKIE_KIND_BITS) - 1);
}

/*
 * The argument that these bits of the cookie describe. The lowest says that it is in a register,
 * the next two in how many bytes of it (a power of two), one whether it has a sign, and five in
 * which; else the others are the argument itself.
 */
static __always_inline s64 cookie_argument(struct pt_regs *ctx, u64 cookie, u32 shift, u32 bits)
{
	s64 word = (s64)(cookie << (64 - shift - bits)) >> (64 - bits);
	u64 value = 0, unused;

	if (!(word & 1))
		return word >> 1;
	bpf_probe_read_kernel(&value, sizeof(value), (void *)ctx + (word >> 4 & 31) * sizeof(u64));
	unused = 64 - (8 << (word >> 1 & 3));
	value <<= unused;
	return word & 8 ? (s64)value >> unused : (s64)(value >> unused);
}

static __always_inline s64 cookie_first(struct pt_regs *ctx, u64 cookie)
{
	return cookie_argument(ctx, cookie, COOKIE_KIND_BITS, COOKIE_FIRST_BITS);
}

static __always_inline s64 cookie_second(struct pt_regs *ctx, u64 cookie)
{
	return cookie_argument(ctx, cookie, COOKIE_KIND_BITS + COOKIE_FIRST_BITS,
			       COOKIE_SECOND_BITS);
}

#endif

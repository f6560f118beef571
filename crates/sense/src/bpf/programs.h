/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which program a process runs, as /proc/PID/exe has it, which only the process's own user and root
 * may read. Included once.
 */

#define PATH_PARTS 32 /* folders and mounts that a path leads through */

static __always_inline struct file *program_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, mm, exe_file);
}

static __always_inline const unsigned char *file_name(struct file *file)
{
	return BPF_CORE_READ(file, f_path.dentry, d_name.name);
}

static __always_inline bool is_wanted(const void *name)
{
	struct program program = {};

	return bpf_probe_read_kernel_str(program.name, sizeof(program.name), name) >= 0 &&
	       bpf_map_lookup_elem(&programs, &program);
}

/* It is: the verifier of 5.10 forgets that while the number is on the stack. */
#define IS_IN_PATH(bytes) asm volatile("%0 &= %1" : "+r"(bytes) : "i"(PATH_BYTES - 1))

/* From the file up to the root of the namespace that it was opened in. */
static __always_inline u64 describe_path(struct running *running, struct file *file)
{
	struct vfsmount *within = BPF_CORE_READ(file, f_path.mnt);
	struct mount *mount = (void *)within - bpf_core_field_offset(struct mount, mnt);
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	u64 bytes = 0;

	for (int i = 0; i < PATH_PARTS && bytes < PATH_BYTES; i++) {
		struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
		struct mount *above = BPF_CORE_READ(mount, mnt_parent);
		bool is_root = dentry == BPF_CORE_READ(mount, mnt.mnt_root);
		const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
		long size;

		if (is_root && above != mount) {
			dentry = BPF_CORE_READ(mount, mnt_mountpoint);
			mount = above;
			continue;
		}
		IS_IN_PATH(bytes);
		if (is_root) {
			running->path[bytes++] = 0;
			break;
		}
		size = bpf_probe_read_kernel_str(&running->path[bytes], NAME_BYTES, name);
		if (size <= 0)
			break;
		bytes += size;
		if (parent == dentry)
			break;
		dentry = parent;
	}
	return bytes < sizeof(running->path) ? bytes : sizeof(running->path);
}

/* The size of what it writes. */
static __always_inline u64 describe(struct running *running, struct task_struct *task)
{
	u64 bytes;

	running->id = id_of_any(task);
	running->groups = (u64)BPF_CORE_READ(task, cgroups);
	running->uid = BPF_CORE_READ(task, cred, uid.val);
	bytes = describe_path(running, program_of(task));
	running->bytes = bytes;
	return __builtin_offsetof(struct running, path) + bytes;
}

static __always_inline bool is_of_one_user(struct task_struct *task)
{
	u32 uid = BPF_CORE_READ(task, cred, uid.val);

	return BPF_CORE_READ(task, cred, euid.val) == uid &&
	       BPF_CORE_READ(task, cred, suid.val) == uid &&
	       BPF_CORE_READ(task, cred, fsuid.val) == uid;
}

/* Tells all processes that run a wanted program, or all with a program. */
SEC("iter/task")
int run(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct program all = {};
	struct running *running;
	u32 first = 0;

	if (!task || task->pid != task->tgid || !program_of(task) || !is_of_one_user(task))
		return 0;
	running = bpf_map_lookup_elem(&a_program, &first);
	if (running &&
	    (is_wanted(file_name(program_of(task))) || bpf_map_lookup_elem(&programs, &all)))
		bpf_seq_write(ctx->meta->seq, running, describe(running, task));
	return 0;
}

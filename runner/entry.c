/*
 * entry.c: where the kernel begins, before libc does.
 *
 * On the way to the first answer this program, which is static, touches a
 * page in nearly every part of itself.  A page fault costs many times what
 * mapping the page costs: so all of the text and of the constants, which are
 * in the page cache for every box, are mapped in one call, and so are the few
 * pages of data that libc writes first.  A kernel that does not know the call
 * refuses it, and the faults are taken one by one.
 *
 * No C runs here: there is no stack guard, no thread pointer yet.  The stack
 * is left as it is, and rdx (x86-64) or x0 (arm64), which tell libc of a
 * function to call at exit, as 0, which is what the kernel gives.
 */
#include <sys/syscall.h>

#define POPULATE_READ	22	/* MADV_*, linux/mman.h */
#define POPULATE_WRITE	23

#define STR(x)	#x
#define VAL(x)	STR(x)

/*
 * [__executable_start, page of the data), [page before that of the GOT, where
 * stands what libc computes and then protects, _edata).
 */
#if defined(__x86_64__)
__asm__(
"	.text\n"
"	.globl	runner_entry\n"
"	.type	runner_entry, @function\n"
"runner_entry:\n"
"	lea	__executable_start(%rip), %rdi\n"
"	lea	__init_array_start(%rip), %rsi\n"
"	and	$-4096, %rsi\n"
"	sub	%rdi, %rsi\n"
"	mov	$" VAL(POPULATE_READ) ", %edx\n"
"	mov	$" VAL(SYS_madvise) ", %eax\n"
"	syscall\n"
"	lea	_GLOBAL_OFFSET_TABLE_(%rip), %rdi\n"
"	and	$-4096, %rdi\n"
"	sub	$4096, %rdi\n"
"	lea	_edata(%rip), %rsi\n"
"	sub	%rdi, %rsi\n"
"	mov	$" VAL(POPULATE_WRITE) ", %edx\n"
"	mov	$" VAL(SYS_madvise) ", %eax\n"
"	syscall\n"
"	xor	%edx, %edx\n"
"	jmp	_start\n"
"	.size	runner_entry, . - runner_entry\n");
#elif defined(__aarch64__)
__asm__(
"	.text\n"
"	.globl	runner_entry\n"
"	.type	runner_entry, %function\n"
"runner_entry:\n"
"	adrp	x0, __executable_start\n"
"	adrp	x1, __init_array_start\n"
"	sub	x1, x1, x0\n"
"	mov	x2, " VAL(POPULATE_READ) "\n"
"	mov	x8, " VAL(SYS_madvise) "\n"
"	svc	0\n"
"	adrp	x0, _GLOBAL_OFFSET_TABLE_\n"
"	sub	x0, x0, 4096\n"
"	adrp	x1, _edata\n"
"	add	x1, x1, :lo12:_edata\n"
"	sub	x1, x1, x0\n"
"	mov	x2, " VAL(POPULATE_WRITE) "\n"
"	mov	x8, " VAL(SYS_madvise) "\n"
"	svc	0\n"
"	mov	x0, 0\n"
"	b	_start\n"
"	.size	runner_entry, . - runner_entry\n");
#else
#error "an entry for this architecture"
#endif

/* See switch.h. What a call must preserve lies on the stack that is left. */
#include "switch.h"

#include <stdint.h>

#ifdef SIM_USES_UCONTEXT

void sim_context_init(sim_context *c, void *stack, size_t size, void (*entry)(void))
{
	getcontext(c);
	c->uc_stack.ss_sp = stack;
	c->uc_stack.ss_size = size;
	c->uc_link = NULL;
	makecontext(c, entry, 0);
}

void sim_context_switch(sim_context *from, sim_context *to)
{
	swapcontext(from, to);
}

#else

void sim__switch(void **save, void *load);

#ifdef __x86_64__

__asm__(".text\n"
        ".globl sim__switch\n"
        ".type sim__switch, @function\n"
        "sim__switch:\n"
        "	endbr64\n"
        "	pushq %rbp\n"
        "	pushq %rbx\n"
        "	pushq %r12\n"
        "	pushq %r13\n"
        "	pushq %r14\n"
        "	pushq %r15\n"
        "	movq %rsp, (%rdi)\n"
        "	movq %rsi, %rsp\n"
        "	popq %r15\n"
        "	popq %r14\n"
        "	popq %r13\n"
        "	popq %r12\n"
        "	popq %rbx\n"
        "	popq %rbp\n"
        "	ret\n"
        ".size sim__switch, .-sim__switch\n");

enum { ENTRY_WORD = 6, FRAME_WORDS = 8 };

#else

__asm__(".text\n"
        ".globl sim__switch\n"
        ".type sim__switch, %function\n"
        "sim__switch:\n"
        "	sub sp, sp, #160\n"
        "	stp x19, x20, [sp, #0]\n"
        "	stp x21, x22, [sp, #16]\n"
        "	stp x23, x24, [sp, #32]\n"
        "	stp x25, x26, [sp, #48]\n"
        "	stp x27, x28, [sp, #64]\n"
        "	stp x29, x30, [sp, #80]\n"
        "	stp d8, d9, [sp, #96]\n"
        "	stp d10, d11, [sp, #112]\n"
        "	stp d12, d13, [sp, #128]\n"
        "	stp d14, d15, [sp, #144]\n"
        "	mov x9, sp\n"
        "	str x9, [x0]\n"
        "	mov sp, x1\n"
        "	ldp x19, x20, [sp, #0]\n"
        "	ldp x21, x22, [sp, #16]\n"
        "	ldp x23, x24, [sp, #32]\n"
        "	ldp x25, x26, [sp, #48]\n"
        "	ldp x27, x28, [sp, #64]\n"
        "	ldp x29, x30, [sp, #80]\n"
        "	ldp d8, d9, [sp, #96]\n"
        "	ldp d10, d11, [sp, #112]\n"
        "	ldp d12, d13, [sp, #128]\n"
        "	ldp d14, d15, [sp, #144]\n"
        "	add sp, sp, #160\n"
        "	ret\n"
        ".size sim__switch, .-sim__switch\n");

enum { ENTRY_WORD = 11, FRAME_WORDS = 20 };

#endif

void sim_context_init(sim_context *c, void *stack, size_t size, void (*entry)(void))
{
	/* x86-64: entry begins as if called, eight bytes off a multiple of sixteen. */
	uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;
	uintptr_t *frame = (uintptr_t *)top - FRAME_WORDS;

	for (int i = 0; i < FRAME_WORDS; i++)
		frame[i] = 0;
	frame[ENTRY_WORD] = (uintptr_t)entry;
	c->sp = frame;
}

void sim_context_switch(sim_context *from, sim_context *to)
{
	sim__switch(&from->sp, to->sp);
}

#endif

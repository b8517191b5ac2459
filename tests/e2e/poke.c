/*
 * poke: makes another process do system calls, to see whether it may. x86-64 Linux only.
 *
 *   poke PID CALL...   with CALL one of getpid, socket, open=PATH, exec=PATH
 *
 * Prints a line a call: its name and its value ("open -13"), or "killed" when the kernel ended the
 * process for it. A test of our confinement asks a live trial process to break it; getpid is the
 * positive control. The process, which must be waiting in a system call, goes on as if nothing had
 * happened. Needs the right to ptrace it.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#define STRING_BYTES 256

/* The process stands in a system call, so the two bytes before its program counter are `syscall`.
 */
static int at_syscall(pid_t pid, const struct user_regs_struct *regs)
{
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, pid, (void *)(regs->rip - 2), NULL);

    return errno == 0 && (word & 0xffff) == 0x050f;
}

static int write_string(pid_t pid, uint64_t address, const char *text)
{
    char bytes[STRING_BYTES] = {0};

    memcpy(bytes, text, strnlen(text, sizeof(bytes) - 1));
    for (size_t i = 0; i < sizeof(bytes); i += sizeof(long)) {
        long word;

        memcpy(&word, bytes + i, sizeof(word));
        if (ptrace(PTRACE_POKEDATA, pid, (void *)(address + i), (void *)word) != 0)
            return -1;
    }
    return 0;
}

static int fill(struct user_regs_struct *regs, const char *what, uint64_t text)
{
    regs->orig_rax = (unsigned long long)-1;
    regs->rip -= 2;
    if (strcmp(what, "open") == 0) {
        regs->rax = SYS_openat;
        regs->rdi = (unsigned long long)-100;
        regs->rsi = text;
        regs->rdx = 0;
    } else if (strcmp(what, "exec") == 0) {
        regs->rax = SYS_execve;
        regs->rdi = text;
        regs->rsi = 0;
        regs->rdx = 0;
    } else if (strcmp(what, "socket") == 0) {
        regs->rax = SYS_socket;
        regs->rdi = 2;
        regs->rsi = 1;
        regs->rdx = 0;
    } else if (strcmp(what, "getpid") == 0) {
        regs->rax = SYS_getpid;
    } else {
        return -1;
    }
    return 0;
}

/* One step over the call; 1 when the process died of it. */
static int step(pid_t pid)
{
    int status;

    if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFSIGNALED(status) || WIFEXITED(status) ||
           (WIFSTOPPED(status) && WSTOPSIG(status) == SIGSYS);
}

static int call(pid_t pid, const struct user_regs_struct *saved, char *spec)
{
    struct user_regs_struct regs = *saved;
    uint64_t text = (saved->rsp - 4096) & ~(uint64_t)15;
    char *path = strchr(spec, '=');

    if (path != NULL)
        *path++ = '\0';
    if (fill(&regs, spec, text) != 0 || write_string(pid, text, path != NULL ? path : "") != 0 ||
        ptrace(PTRACE_SETREGS, pid, NULL, &regs) != 0) {
        fprintf(stderr, "poke: cannot prepare '%s'\n", spec);
        return -1;
    }
    if (step(pid) != 0) {
        printf("%s killed\n", spec);
        return -1;
    }
    if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) != 0)
        return -1;
    printf("%s %lld\n", spec, (long long)regs.rax);
    return 0;
}

int main(int argc, char **argv)
{
    struct user_regs_struct saved;
    int status;

    if (argc < 3) {
        fprintf(stderr, "usage: poke PID getpid|socket|open=PATH|exec=PATH...\n");
        return 2;
    }

    pid_t pid = (pid_t)strtol(argv[1], NULL, 10);

    if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) != 0 || waitpid(pid, &status, 0) != pid ||
        ptrace(PTRACE_GETREGS, pid, NULL, &saved) != 0 || !at_syscall(pid, &saved)) {
        perror("poke: cannot take the process over");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        if (call(pid, &saved, argv[i]) != 0)
            return 0;
    }
    /* The interrupted call is done again from its start. */
    saved.rip -= 2;
    saved.rax = saved.orig_rax;
    saved.orig_rax = (unsigned long long)-1;
    if (ptrace(PTRACE_SETREGS, pid, NULL, &saved) != 0 ||
        ptrace(PTRACE_DETACH, pid, NULL, NULL) != 0)
        return 2;
    return 0;
}

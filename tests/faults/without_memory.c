/* Runs a program for which the kernel has no memory to populate more than some bytes at once: madvise(MADV_POPULATE_READ)
 * fails as it does where an access would raise SIGBUS.
 *
 *   without_memory BYTES PROGRAM ARGUMENTS... */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { POPULATE_READ = 22 };

/* The lower half of an argument. */
#define ARGUMENT(number) \
    (offsetof(struct seccomp_data, args) + (number) * sizeof(uint64_t) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))

int main(int argc, char **argv) {
    uint32_t bytes = argc > 2 ? (uint32_t)atoi(argv[1]) : 0;
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(2)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, POPULATE_READ, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(1)),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, bytes, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EFAULT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof instructions / sizeof *instructions, instructions};
    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 1;
    execvp(argv[2], argv + 2);
    return 1;
}

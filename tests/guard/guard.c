/* Preloaded by tests: ends the process when its cycle code touches the heap, a lock, a stream or the log.
 *
 * The server and the library call consort_cycle_enter and consort_cycle_leave around their own part of a
 * cycle, never around a program's process callback. CONSORT_GUARD_FILE, if set, gets one letter for each
 * process that ran a guarded cycle ('c') or broke the rule ('!'), so that a test can tell that the guard was
 * armed at all. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static __thread int armed __attribute__((tls_model("initial-exec")));
static int seen;

static void note(char letter) {
    const char *path = getenv("CONSORT_GUARD_FILE");
    if (!path)
        return;
    long file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) {
        syscall(SYS_write, file, &letter, 1);
        syscall(SYS_close, file);
    }
}

void consort_cycle_enter(void) {
    if (!__atomic_exchange_n(&seen, 1, __ATOMIC_RELAXED))
        note('c');
    armed = 1;
}

void consort_cycle_leave(void) { armed = 0; }

static void check(const char *what) {
    if (!armed)
        return;
    armed = 0;
    char text[128] = "consort guard: called inside a cycle: ";
    strncat(text, what, 60);
    strcat(text, "\n");
    syscall(SYS_write, 2, text, strlen(text));
    note('!');
    abort();
}

/* malloc and its family: glibc's own names, so that no dlsym is needed to reach them. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t size) { return check("malloc"), __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return check("calloc"), __libc_calloc(count, size); }
void *realloc(void *at, size_t size) { return check("realloc"), __libc_realloc(at, size); }
void *memalign(size_t alignment, size_t size) { return check("memalign"), __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return check("aligned_alloc"), __libc_memalign(alignment, size); }
int posix_memalign(void **at, size_t alignment, size_t size) {
    check("posix_memalign");
    *at = __libc_memalign(alignment, size);
    return *at ? 0 : ENOMEM;
}
void free(void *at) {
    if (at)
        check("free");
    __libc_free(at);
}

#define NEXT(name) \
    static __typeof__(&name) next; \
    if (!next) \
        next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    check("pthread_mutex_lock");
    NEXT(pthread_mutex_lock);
    return next(mutex);
}
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    check("pthread_cond_wait");
    NEXT(pthread_cond_wait);
    return next(condition, mutex);
}
ssize_t read(int file, void *into, size_t bytes) {
    check("read");
    return syscall(SYS_read, file, into, bytes);
}
int vfprintf(FILE *file, const char *format, va_list arguments) {
    check("vfprintf");
    NEXT(vfprintf);
    return next(file, format, arguments);
}
size_t fwrite(const void *from, size_t size, size_t count, FILE *file) {
    check("fwrite");
    NEXT(fwrite);
    return next(from, size, count, file);
}
int nanosleep(const struct timespec *request, struct timespec *remaining) {
    check("nanosleep");
    NEXT(nanosleep);
    return next(request, remaining);
}

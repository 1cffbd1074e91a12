/* A file of which nothing is answered once it is open, neither its close nor its size nor its content: it lies on a file
 * system of FUSE that is silent from then on.
 *
 * Processes that wait for it cannot even be killed until the file system is gone. That is a process which holds none of its
 * files: it ends after half a minute, or with its process group. */
#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/uio.h>

enum { FUSE_SECONDS = 30, FUSE_FILE = 2 };

static void fuse_answer(int device, uint64_t request, int error, const void *body, size_t bytes) {
    struct fuse_out_header header = {(uint32_t)(sizeof header + bytes), error, request};
    struct iovec parts[2] = {{&header, sizeof header}, {(void *)body, bytes}};
    if (writev(device, parts, 2) < 0 && errno != ENOENT)
        _exit(1);
}

static struct fuse_attr fuse_attributes(uint64_t node) {
    uint32_t mode = node == FUSE_FILE ? S_IFREG | 0666 : S_IFDIR | 0777;
    return (struct fuse_attr){.ino = node, .mode = mode, .nlink = 1, .blksize = 4096};
}

static void fuse_serve(int device) {
    static _Alignas(8) char request[1 << 16];
    int is_silent = 0;
    for (;;) {
        ssize_t bytes = read(device, request, sizeof request);
        if (bytes < 0 && (errno == EINTR || errno == ENOENT))
            continue;
        if (bytes < (ssize_t)sizeof(struct fuse_in_header))
            _exit(0);
        if (is_silent)
            continue;
        struct fuse_in_header *head = (struct fuse_in_header *)request;
        struct fuse_init_out started = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
        struct fuse_entry_out found = {.nodeid = FUSE_FILE, .attr = fuse_attributes(FUSE_FILE)};
        struct fuse_attr_out attributes = {.attr = fuse_attributes(head->nodeid)};
        struct fuse_open_out opened = {.fh = 1};
        switch (head->opcode) {
        case FUSE_INIT: fuse_answer(device, head->unique, 0, &started, sizeof started); break;
        case FUSE_LOOKUP: fuse_answer(device, head->unique, 0, &found, sizeof found); break;
        case FUSE_GETATTR: fuse_answer(device, head->unique, 0, &attributes, sizeof attributes); break;
        case FUSE_OPEN:
            is_silent = 1;
            fuse_answer(device, head->unique, 0, &opened, sizeof opened);
            break;
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
        case FUSE_INTERRUPT: break;
        default: fuse_answer(device, head->unique, -ENOSYS, NULL, 0);
        }
    }
}

static void fuse_write(const char *path, const char *text) {
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        _exit(1);
    close(file);
}

/* Mounts it in a mount namespace of its own, as root or as root of a user namespace; returns its device. */
static int fuse_mount(void) {
    char map[64], options[128];
    unsigned user = geteuid(), group = getegid(), inner_user = user, inner_group = group;
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            _exit(1);
        fuse_write("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "0 %u 1", user);
        fuse_write("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "0 %u 1", group);
        fuse_write("/proc/self/gid_map", map);
        inner_user = inner_group = 0;
    }
    int device = open("/dev/fuse", O_RDWR);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=%u", device, inner_user, inner_group);
    if (device < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("silent", "/tmp", "fuse", MS_NOSUID | MS_NODEV, options) != 0)
        _exit(1);
    return device;
}

static void fuse_pass(int to, int file) {
    char byte = 'x', space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &file, sizeof file);
    sendmsg(to, &message, 0);
}

static int fuse_take(int from) {
    char byte, space[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    int file = -1;
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    return file;
}

/* Returns such a file; -1: this machine lets nobody mount a file system of FUSE. */
static int silent_fuse_file(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        abort();
    if (fork() == 0) {
        close(ends[0]);
        alarm(FUSE_SECONDS);
        int device = fuse_mount();
        /* Its own close has to wait for the file system as well. */
        if (fork() == 0) {
            close(device);
            alarm(FUSE_SECONDS);
            int file = open("/tmp/file", O_RDWR);
            if (file >= 0)
                fuse_pass(ends[1], file);
            close(ends[1]);
            for (;;)
                pause();
        }
        close(ends[1]);
        fuse_serve(device);
    }
    close(ends[1]);
    int file = fuse_take(ends[0]);
    close(ends[0]);
    return file;
}

// Preloaded: one call that writes below a folder fails, or all from that one on. See failing_writes.py.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static atomic_int count, first, last, number;

void fail_writes(const char *below, int from, int to, int error) {
  first = last = 0;
  strncpy(folder, below, PATH_MAX - 1);
  count = 0, number = error, first = from, last = to;
}

int writes(void) { return count; }

// A process that a test does not begin itself is told by its environment: FAIL_BELOW, FAIL_FIRST, FAIL_LAST, FAIL_ERROR.
__attribute__((constructor)) static void from_environment(void) {
  const char *below = getenv("FAIL_BELOW");
  if (below) fail_writes(below, atoi(getenv("FAIL_FIRST")), atoi(getenv("FAIL_LAST")), atoi(getenv("FAIL_ERROR")));
}

static int fails(const char *path) {
  if (!folder[0] || strncmp(path, folder, strlen(folder))) return 0;
  int call = ++count;
  if (call < first || call > last) return 0;
  errno = number;
  return 1;
}

static int fails_at(int descriptor, const char *path) {
  char whole[2 * PATH_MAX], link[64];
  int before = errno;
  ssize_t length = 0;
  if (!path || path[0] != '/') {
    if (path && descriptor == AT_FDCWD) snprintf(link, 64, "/proc/self/cwd");
    else snprintf(link, 64, "/proc/self/fd/%d", descriptor);
    length = readlink(link, whole, PATH_MAX - 1);
    errno = before;
    if (length <= 0) return 0;
    whole[length++] = '/';
  }
  if (path) snprintf(whole + length, PATH_MAX, "%s", path);
  else whole[length - 1] = 0;
  return fails(whole);
}

#define WRAP(result, name, parameters, arguments, descriptor, path)            \
  result name parameters {                                                     \
    static result(*real) parameters;                                           \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                 \
    return fails_at(descriptor, path) ? -1 : real arguments;                   \
  }
WRAP(ssize_t, write, (int d, const void *b, size_t n), (d, b, n), d, NULL)
WRAP(ssize_t, pwrite, (int d, const void *b, size_t n, off_t o), (d, b, n, o), d, NULL)
WRAP(ssize_t, pwrite64, (int d, const void *b, size_t n, off_t o), (d, b, n, o), d, NULL)
WRAP(ssize_t, writev, (int d, const struct iovec *v, int n), (d, v, n), d, NULL)
WRAP(ssize_t, pwritev, (int d, const struct iovec *v, int n, off_t o), (d, v, n, o), d, NULL)
WRAP(int, fsync, (int d), (d), d, NULL)
WRAP(int, fdatasync, (int d), (d), d, NULL)
WRAP(int, ftruncate, (int d, off_t n), (d, n), d, NULL)
WRAP(int, ftruncate64, (int d, off_t n), (d, n), d, NULL)
WRAP(int, rename, (const char *a, const char *b), (a, b), AT_FDCWD, b)
WRAP(int, renameat, (int d, const char *a, int e, const char *b), (d, a, e, b), e, b)
WRAP(int, mkdir, (const char *a, mode_t m), (a, m), AT_FDCWD, a)
WRAP(int, mkdirat, (int d, const char *a, mode_t m), (d, a, m), d, a)

#define WRAP_OPEN(name, parameters, types, arguments, descriptor)              \
  int name parameters {                                                        \
    static int(*real) types;                                                   \
    if (!real) real = dlsym(RTLD_NEXT, #name);                                 \
    va_list rest;                                                              \
    va_start(rest, flags);                                                     \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;    \
    va_end(rest);                                                              \
    int writing = flags & (O_CREAT | O_WRONLY | O_RDWR);                       \
    return writing && fails_at(descriptor, path) ? -1 : real arguments;        \
  }
WRAP_OPEN(open, (const char *path, int flags, ...), (const char *, int, ...), (path, flags, mode), AT_FDCWD)
WRAP_OPEN(open64, (const char *path, int flags, ...), (const char *, int, ...), (path, flags, mode), AT_FDCWD)
WRAP_OPEN(openat, (int d, const char *path, int flags, ...), (int, const char *, int, ...), (d, path, flags, mode), d)
WRAP_OPEN(openat64, (int d, const char *path, int flags, ...), (int, const char *, int, ...), (d, path, flags, mode), d)

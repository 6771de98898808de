/* System calls that go wrong: the n-th one, of those that concern files below one folder. To be preloaded.
 *
 * fault_arm(folder, at, fault): from now on calls are counted, and call `at` goes wrong (0: none).
 * fault_calls(): how many were counted.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum fault { NONE, WRONG_EIO, WRONG_ENOSPC, WRONG_EINTR, WRONG_SHORT, WRONG_KILL };
enum { DESCRIPTORS = 1024 };

static char folder[4096];
static size_t folder_length;
static long calls, bad_call;
static int fault, is_full;
static char is_ours[DESCRIPTORS];

void fault_arm(const char *below, long at, int which) {
  snprintf(folder, sizeof folder, "%s", below);
  folder_length = strlen(folder);
  calls = 0;
  bad_call = at;
  fault = which;
  is_full = 0;
}

long fault_calls(void) { return calls; }

static int below(const char *path) { return folder_length > 0 && path && strncmp(path, folder, folder_length) == 0; }

static int ours(int descriptor) { return descriptor >= 0 && descriptor < DESCRIPTORS && is_ours[descriptor]; }

/* Whether the call that begins goes wrong. Short writes and interrupted calls are told apart by the caller. */
static int goes_wrong(int is_write) {
  calls++;
  if (is_full && is_write) return 1;
  if (calls != bad_call) return 0;
  if (fault == WRONG_KILL) kill(getpid(), SIGKILL);
  if (fault == WRONG_SHORT) return is_write;
  if (fault == WRONG_ENOSPC) is_full = 1; /* a full disk stays full */
  return 1;
}

static int error(void) {
  errno = fault == WRONG_ENOSPC ? ENOSPC : fault == WRONG_EINTR ? EINTR : EIO;
  return -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int opened(int descriptor, int counts) {
  if (descriptor >= 0 && descriptor < DESCRIPTORS) is_ours[descriptor] = (char)counts;
  return descriptor;
}

#define OPEN(name)                                                   \
  int name(const char *path, int flags, ...) {                       \
    mode_t mode = 0;                                                 \
    if (flags & (O_CREAT | O_TMPFILE)) {                             \
      va_list more;                                                  \
      va_start(more, flags);                                         \
      mode = va_arg(more, mode_t);                                   \
      va_end(more);                                                  \
    }                                                                \
    int counts = below(path);                                        \
    if (counts && goes_wrong(0)) return error();                     \
    return opened(REAL(name)(path, flags, mode), counts);            \
  }
OPEN(open)
OPEN(open64)

ssize_t write(int descriptor, const void *data, size_t size) {
  if (ours(descriptor) && goes_wrong(1)) {
    if (fault != WRONG_SHORT) {
      /* A disk that is nearly full takes a part. */
      if (fault == WRONG_ENOSPC && size > 2 && calls == bad_call) REAL(write)(descriptor, data, size / 3);
      return error();
    }
    size = size > 1 ? size / 2 : size;
  }
  return REAL(write)(descriptor, data, size);
}

int fsync(int descriptor) { return ours(descriptor) && goes_wrong(0) ? error() : REAL(fsync)(descriptor); }

int close(int descriptor) {
  int is_bad = ours(descriptor) && goes_wrong(0);
  if (descriptor >= 0 && descriptor < DESCRIPTORS) is_ours[descriptor] = 0;
  int answer = REAL(close)(descriptor); /* the descriptor is gone all the same */
  return is_bad ? error() : answer;
}

int rename(const char *from, const char *to) { return below(to) && goes_wrong(0) ? error() : REAL(rename)(from, to); }

int unlink(const char *path) { return below(path) && goes_wrong(0) ? error() : REAL(unlink)(path); }

int mkdir(const char *path, mode_t mode) { return below(path) && goes_wrong(0) ? error() : REAL(mkdir)(path, mode); }

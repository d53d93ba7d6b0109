// Preloaded into the ranks of a command: rank FREEZE_RANK is stopped as a whole (SIGSTOP) when it calls FREEZE_IN (fsync
// or pread) for a checkpoint. Threads other than the first wait with what they write to one as long as the file HOLD_WRITES
// is there, and find the disk full where FULL_DISK is set. Each read of a file with SLOW_READS in its path takes 0.3 s more.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char* variable, const char* value) {
  const char* found = getenv(variable);
  return found && value && strcmp(found, value) == 0;
}

static int has_in_path(int file, const char* part) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = 0;
  return strstr(path, part) != 0;
}

static int is_checkpoint(int file) { return has_in_path(file, "/checkpoints/step-"); }

static void freeze_in(const char* function, int file) {
  if (is("FREEZE_IN", function) && is("FREEZE_RANK", getenv("PMI_RANK")) && is_checkpoint(file)) raise(SIGSTOP);
}

static int is_full(int file) {
  const char* hold = getenv("HOLD_WRITES");
  if (gettid() == getpid() || !is_checkpoint(file)) return 0;
  while (hold && access(hold, F_OK) == 0) usleep(1000);
  return getenv("FULL_DISK") != 0;
}

int fsync(int file) {
  freeze_in("fsync", file);
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

ssize_t read(int file, void* into, size_t count) {
  const char* slow = getenv("SLOW_READS");
  if (slow && has_in_path(file, slow)) usleep(300000);
  return ((ssize_t(*)(int, void*, size_t))dlsym(RTLD_NEXT, "read"))(file, into, count);
}

ssize_t pread(int file, void* into, size_t count, off_t offset) {
  freeze_in("pread", file);
  return ((ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread"))(file, into, count, offset);
}

ssize_t pread64(int file, void* into, size_t count, off64_t offset) {
  freeze_in("pread", file);
  return ((ssize_t(*)(int, void*, size_t, off64_t))dlsym(RTLD_NEXT, "pread64"))(file, into, count, offset);
}

ssize_t pwrite(int file, const void* from, size_t count, off_t offset) {
  if (is_full(file)) return errno = ENOSPC, -1;
  return ((ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(file, from, count, offset);
}

ssize_t pwrite64(int file, const void* from, size_t count, off64_t offset) {
  if (is_full(file)) return errno = ENOSPC, -1;
  return ((ssize_t(*)(int, const void*, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64"))(file, from, count, offset);
}

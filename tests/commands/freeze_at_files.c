// Preloaded into the ranks of a command: rank FREEZE_RANK is stopped as a whole (SIGSTOP) when it calls FREEZE_IN (fsync
// or pread) for a checkpoint.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char* variable, const char* value) {
  const char* found = getenv(variable);
  return found && value && strcmp(found, value) == 0;
}

static void freeze_in(const char* function, int file) {
  char link[64], path[4096];
  if (!is("FREEZE_IN", function) || !is("FREEZE_RANK", getenv("PMI_RANK"))) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = 0;
  if (strstr(path, "/checkpoints/step-")) raise(SIGSTOP);
}

int fsync(int file) {
  freeze_in("fsync", file);
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

ssize_t pread(int file, void* into, size_t count, off_t offset) {
  freeze_in("pread", file);
  return ((ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, "pread"))(file, into, count, offset);
}

ssize_t pread64(int file, void* into, size_t count, off64_t offset) {
  freeze_in("pread", file);
  return ((ssize_t(*)(int, void*, size_t, off64_t))dlsym(RTLD_NEXT, "pread64"))(file, into, count, offset);
}

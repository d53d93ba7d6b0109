#include "libalpa/solver/guarded_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "libalpa/solver/incumbent.h"

namespace alpa {
namespace {

bool write_all(int fd, const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(fd, next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

// Never returns. Leaves without running the parent's exit handlers.
[[noreturn]] void be_the_child(const std::function<std::vector<double>()>& body, int out, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const int silence = open("/dev/null", O_RDWR);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (silence >= 0) dup2(silence, fd);
  }
  try {
    const auto result = body();
    const std::uint64_t count = result.size();
    const bool sent =
        write_all(out, &count, sizeof count) && write_all(out, result.data(), count * sizeof(double));
    _exit(sent ? 0 : 1);
  } catch (...) {
    _exit(1);
  }
}

// Everything the child writes until it closes its end; nothing when that takes too long.
std::optional<std::vector<char>> read_until(int in, const Deadline& deadline) {
  std::vector<char> received;
  while (true) {
    const double left = deadline.seconds_left();
    if (left <= 0) return std::nullopt;
    pollfd waiting{.fd = in, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min(left * 1000 + 1, 1e6)));
    if (ready < 0 && errno != EINTR) return std::nullopt;
    if (ready <= 0) continue;
    char block[1 << 16];
    const ssize_t bytes = read(in, block, sizeof block);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return std::nullopt;
    if (bytes == 0) return received;
    received.insert(received.end(), block, block + bytes);
  }
}

}  // namespace

std::optional<std::vector<double>> run_in_child(const std::function<std::vector<double>()>& body,
                                                double time_limit_s) {
  const Deadline deadline(time_limit_s);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    be_the_child(body, ends[1], parent);
  }
  close(ends[1]);
  std::optional<std::vector<char>> received;
  if (child > 0) {
    received = read_until(ends[0], deadline);
    if (!received) kill(child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  close(ends[0]);

  std::uint64_t count = 0;
  if (!received || received->size() < sizeof count) return std::nullopt;
  std::copy_n(received->data(), sizeof count, reinterpret_cast<char*>(&count));
  if (received->size() != sizeof count + count * sizeof(double)) return std::nullopt;
  std::vector<double> result(count);
  std::copy_n(received->data() + sizeof count, count * sizeof(double),
              reinterpret_cast<char*>(result.data()));
  return result;
}

}  // namespace alpa

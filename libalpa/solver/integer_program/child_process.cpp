#include "libalpa/solver/integer_program/child_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

constexpr double kLookEvery_ms = 50;  ///< at a stop that may be asked for

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

[[noreturn]] void refuse(const std::string& program, int error) {
  throw Error(ErrorKind::run_time, fmt::format("cannot start '{}': {}", program, std::strerror(error)),
              "it belongs into the same folder as this command; install the suite as a whole");
}

// The whole input lies in memory before the process starts, so that neither side ever waits for the other to
// read.
int file_with(const std::string& input) {
  const int fd = memfd_create("input", MFD_CLOEXEC);
  std::size_t written = 0;
  while (fd >= 0 && written < input.size()) {
    const ssize_t bytes = write(fd, input.data() + written, input.size() - written);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) {
      const int error = errno;
      ::close(fd);
      errno = error;
      return -1;
    }
    written += static_cast<std::size_t>(bytes);
  }
  if (fd >= 0) lseek(fd, 0, SEEK_SET);
  return fd;
}

/// This process's environment, but for one thread in what the child computes with: threads of a BLAS would
/// wait for each other longer than they work, and sums would depend on the number of cores.
std::vector<std::string> child_environment() {
  std::vector<std::string> variables{"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("OMP_NUM_THREADS=") && !text.starts_with("OPENBLAS_NUM_THREADS="))
      variables.emplace_back(text);
  }
  return variables;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

pid_t spawn(const std::vector<std::string>& command, int input, int output) {
  FileActions actions;
  posix_spawn_file_actions_adddup2(actions.get(), input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(actions.get(), STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const std::vector<std::string> environment = child_environment();
  pid_t child = -1;
  const int error = posix_spawn(&child, command[0].c_str(), actions.get(), nullptr, pointers(command).data(),
                                pointers(environment).data());
  if (error != 0) refuse(command[0], error);
  return child;
}

// Everything until the other end is closed; nothing when that takes too long.
std::optional<std::string> read_until(int in, const Deadline& deadline) {
  std::string received;
  while (true) {
    const double left = deadline.seconds_left();
    if (left <= 0) return std::nullopt;
    pollfd waiting{.fd = in, .events = POLLIN, .revents = 0};
    const double most_ms = deadline.stop() ? kLookEvery_ms : 1e6;
    const int ready = poll(&waiting, 1, static_cast<int>(std::min(left * 1000 + 1, most_ms)));
    if (ready < 0 && errno != EINTR) return std::nullopt;
    if (ready <= 0) continue;
    char block[1 << 16];
    const ssize_t bytes = read(in, block, sizeof block);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return std::nullopt;
    if (bytes == 0) return received;
    received.append(block, static_cast<std::size_t>(bytes));
  }
}

}  // namespace

std::optional<std::string> run_process(const std::vector<std::string>& command, const std::string& input,
                                       const Deadline& deadline) {
  const File in(file_with(input));
  if (in.fd() < 0) refuse(command[0], errno);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) refuse(command[0], errno);
  const File result(ends[0]);
  File output(ends[1]);
  const pid_t child = spawn(command, in.fd(), output.fd());
  output.close();
  auto received = read_until(result.fd(), deadline);
  if (!received) kill(child, SIGKILL);
  int status = 0;
  pid_t waited = -1;
  while ((waited = waitpid(child, &status, 0)) < 0 && errno == EINTR) continue;
  if (waited != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return received;
}

}  // namespace alpa

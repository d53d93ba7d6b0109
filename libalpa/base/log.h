#pragma once
#include <memory>
#include <string>

namespace spdlog {
class logger;
}

namespace alpa {

enum class LogLevel { debug, info, warning, error, off };

/// The log of one rank: lines on stderr, prefixed with the command's name, handed down by reference.
/// stdout is for answers. Rank 0 speaks; other ranks only warn. Not copied; calls are thread-safe.
class Log {
 public:
  /// Lines below `level` are dropped. `name` is the prefix, e.g. "alpa-train" or "alpa-train: rank 3".
  Log(const std::string& name, LogLevel level);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(const std::string& line);
  void info(const std::string& line);
  void warning(const std::string& line);
  void error(const std::string& line);

 private:
  std::unique_ptr<spdlog::logger> logger_;
};

}  // namespace alpa

#include "libalpa/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "libalpa/base/names.h"

namespace alpa {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

}  // namespace

Log::Log(const std::string& name, LogLevel level)
    : logger_(std::make_unique<spdlog::logger>(name, std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_pattern("%n: %v");
  logger_->set_level(spdlog_level(level));
  logger_->flush_on(spdlog::level::debug);
}

Log::~Log() = default;

void Log::debug(const std::string& line) { logger_->debug(printable(line)); }
void Log::info(const std::string& line) { logger_->info(printable(line)); }
void Log::warning(const std::string& line) { logger_->warn("warning: {}", printable(line)); }
void Log::error(const std::string& line) { logger_->error("error: {}", printable(line)); }

}  // namespace alpa

#include "libalpa/trainer/metrics.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/h5/atomic_file.h"

namespace alpa {
namespace {

/// The step of a line as set_metrics() makes it; -1 for another text.
std::int64_t step_of(std::string_view line) {
  constexpr std::string_view before = "{\"step\":";
  std::int64_t step = -1;
  if (line.starts_with(before) && line.ends_with('}'))
    std::from_chars(line.data() + before.size(), line.data() + line.size(), step);
  return step;
}

/// Length of the beginning of `text` that holds whole lines of steps up to `steps_done`.
std::size_t kept_bytes(std::string_view text, std::int64_t steps_done) {
  std::size_t kept = 0;
  while (true) {
    const std::size_t end = text.find('\n', kept);
    if (end == std::string_view::npos) return kept;
    const std::int64_t step = step_of(text.substr(kept, end - kept));
    if (step < 0 || step > steps_done) return kept;
    kept = end + 1;
  }
}

void set(JsonObject& object, const char* name, std::optional<double> value) {
  if (value)
    object.set(name, *value);
  else
    object.set_null(name);
}

std::optional<double> fraction_of_peak(double flops, double seconds, std::optional<double> peak_per_s) {
  if (!peak_per_s || *peak_per_s <= 0 || seconds <= 0) return std::nullopt;
  return flops / seconds / *peak_per_s;
}

Error failure(ErrorKind kind, const std::filesystem::path& path) {
  return Error(kind, fmt::format("cannot write '{}': {}", path.string(), std::strerror(errno)),
               errno == ENOSPC || errno == EDQUOT ? "free some space or quota"
                                                  : "choose a --run-dir that you may write to");
}

void append(int descriptor, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw failure(ErrorKind::run_time, path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

int open_for_appending(const std::filesystem::path& path) {
  // Also for reading: what is removed can be written again.
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) throw failure(ErrorKind::input, path);
  return descriptor;
}

}  // namespace

JsonObject numbers_json(std::span<const NamedNumber> numbers) {
  JsonObject object;
  for (const NamedNumber& number : numbers) object.set(number.name, number.value);
  return object;
}

std::string numbers_text(std::span<const NamedNumber> numbers) {
  std::string text;
  for (const NamedNumber& number : numbers) text += fmt::format("  {} {:.4g}", number.name, number.value);
  return text;
}

std::string SavedCheckpoint::text() const {
  return fmt::format("{} in {}, {}", bytes_text(bytes), seconds_text(seconds),
                     rate_text(static_cast<double>(bytes) / seconds, "B/s"));
}

std::optional<double> peak_fraction(const StepMetrics& m) {
  return fraction_of_peak(m.reference.flops, m.step_s, m.reference.peak_flops_per_s);
}

JsonObject& set_metrics(JsonObject& line, const StepMetrics& m) {
  std::array<char, 16> hash;
  fmt::format_to(hash.data(), "{:016x}", m.samples_hash);
  line.set("step", m.step);
  if (m.first_of_job) line.set("first_of_job", true);
  if (m.emulated) line.set("emulated", true);
  const auto computed = [&](double number) { return m.emulated ? std::nullopt : std::optional(number); };
  set(line, "loss", computed(m.loss));
  set(line, "gradient_norm", computed(m.gradient_norm));
  line.set("learning_rate", m.learning_rate);
  if (m.loss_scale && !m.emulated)
    line.set("loss_scale", *m.loss_scale).set("skipped_steps", m.skipped_steps);
  if (m.corrected_steps > 0) line.set("corrected_steps", m.corrected_steps);
  if (m.lead) line.set("lead", static_cast<std::int64_t>(*m.lead));
  line.set("samples", m.samples)
      .set("samples_per_s", static_cast<double>(m.samples) / m.step_s)
      .set("tokens", m.tokens)
      .set("tokens_per_s", static_cast<double>(m.tokens) / m.step_s)
      .set("step_s", m.step_s);
  set(line, "predicted_step_s", m.reference.predicted_step_s);
  line.set("data_s", m.data_s).set("flops_per_s", m.reference.flops / m.step_s);
  set(line, "peak_flops_per_s", m.reference.peak_flops_per_s);
  line.set("peak_origin", m.reference.peak_origin);
  set(line, "peak_fraction", peak_fraction(m));
  line.set("memory_bytes", m.memory_bytes);
  set(line, "process_bytes",
      m.process_bytes > 0 ? std::optional(static_cast<double>(m.process_bytes)) : std::nullopt);
  line.set("samples_hash", std::string_view(hash.data(), hash.size()));
  set(line, "checkpoint_s", m.checkpoint_s);
  if (m.saved)
    line.set("saved_step", m.saved->step).set("saved_bytes", m.saved->bytes).set("saved_s", m.saved->seconds);
  if (!m.of_model.empty() && !m.emulated) line.set("metrics", numbers_json(m.of_model));
  set(line, "evaluation_loss", m.evaluation ? std::optional(m.evaluation->loss) : std::nullopt);
  if (m.evaluation && !m.evaluation->of_model.empty())
    line.set("evaluation_metrics", numbers_json(m.evaluation->of_model));
  return line;
}

void StepTotals::add(const StepMetrics& m) {
  samples += m.samples;
  tokens += m.tokens;
  flops += m.reference.flops;
  seconds += m.step_s;
}

namespace {

std::string computed_text(const StepMetrics& m) {
  std::string text = fmt::format("  loss {:.4f}", m.loss) + numbers_text(m.of_model);
  if (m.evaluation)
    text += fmt::format("  evaluation {:.4f}", m.evaluation->loss) + numbers_text(m.evaluation->of_model);
  text += fmt::format("  gradient norm {:.3g}  learning rate {:.3g}", m.gradient_norm, m.learning_rate);
  if (m.loss_scale) text += fmt::format("  loss scale {:.6g}  skipped {}", *m.loss_scale, m.skipped_steps);
  if (m.corrected_steps > 0) text += fmt::format("  corrected {}", m.corrected_steps);
  if (m.lead) text += fmt::format("  lead {}", *m.lead);
  return text;
}

}  // namespace

std::string progress_line(const StepMetrics& m, const StepTotals& since, std::int64_t total_steps,
                          double eta_s) {
  std::string line = fmt::format("step {}/{}", m.step, total_steps);
  line += m.emulated ? fmt::format("  emulated in {}", seconds_text(m.step_s)) : computed_text(m);
  line += fmt::format("  {}  {}",
                      since.tokens > 0
                          ? rate_text(static_cast<double>(since.tokens) / since.seconds, "tokens/s")
                          : rate_text(static_cast<double>(since.samples) / since.seconds, "samples/s"),
                      rate_text(since.flops / since.seconds, "FLOP/s"));
  const StepReference& reference = m.reference;
  if (const auto fraction = fraction_of_peak(since.flops, since.seconds, reference.peak_flops_per_s))
    line += fmt::format(" ({:.1f} % of {}, {})", 100 * *fraction,
                        rate_text(*reference.peak_flops_per_s, "FLOP/s"), reference.peak_origin);
  return line +
         fmt::format("  memory {}{}  left {}", bytes_text(m.memory_bytes),
                     m.process_bytes > 0 ? fmt::format(" (process {})", bytes_text(m.process_bytes)) : "",
                     seconds_text(eta_s));
}

MetricsFile::MetricsFile(std::filesystem::path path, std::int64_t steps_done) : path_(std::move(path)) {
  constexpr std::size_t most =
      4096;  // more than lines have, so that longer numbers take nothing from the heap
  object_.reserve(most);
  line_.reserve(most);
  std::ifstream file(path_, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t kept = kept_bytes(text, steps_done);
  if (kept < text.size()) {
    std::filesystem::path aside = path_;
    aside.replace_extension(".set-aside.jsonl");
    const int into = open_for_appending(aside);
    try {
      append(into, text.substr(kept) + (text.ends_with('\n') ? "" : "\n"), aside);
    } catch (const Error&) {
      close(into);
      throw;
    }
    close(into);
    if (truncate(path_.c_str(), static_cast<off_t>(kept)) != 0) throw failure(ErrorKind::input, path_);
  }
  descriptor_ = open_for_appending(path_);
}

MetricsFile::~MetricsFile() { close(descriptor_); }

void MetricsFile::add(const StepMetrics& metrics) {
  object_.clear();
  line_.clear();
  set_metrics(object_, metrics).write(line_);
  line_ += '\n';
  append(descriptor_, line_, path_);
}

void MetricsFile::sync() {
  // Pipes and some file systems have nothing to synchronise and say EINVAL.
  if (fsync(descriptor_) != 0 && errno != EINVAL) throw failure(ErrorKind::run_time, path_);
}

bool MetricsFile::restore_if_removed() {
  if (access(path_.c_str(), F_OK) == 0 || errno != ENOENT) return false;
  make_folder(path_.parent_path());
  const int removed = std::exchange(descriptor_, open_for_appending(path_));
  std::array<char, 1 << 16> piece;
  ssize_t count = 0;
  for (off_t at = 0; (count = pread(removed, piece.data(), piece.size(), at)) > 0; at += count)
    append(descriptor_, {piece.data(), static_cast<std::size_t>(count)}, path_);
  close(removed);
  return true;
}

}  // namespace alpa

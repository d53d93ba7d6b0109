#include "libalpa/dataset/partial_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "libalpa/base/fingerprint.h"
#include "libalpa/base/units.h"
#include "libalpa/h5/atomic_file.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

/// What a record says: of the files that were begun where their tokens begin, and the place that was reached.
struct TokensRecord {
  std::string made_with;
  TextPlace reached;
  std::vector<std::string> identities;
  std::vector<TextPlace> begins;
};

/// The first line, which no other content has.
std::string first_line(std::string_view content) {
  return fmt::format("alpa tokens 1 {}", fingerprint(content));
}

std::string text_of(const TokensRecord& record) {
  const TextPlace& reached = record.reached;
  std::string content = fmt::format("{}\n{} {} {} {} {}\n", record.made_with, reached.file, reached.lines,
                                    reached.bytes, reached.documents, reached.tokens);
  for (std::size_t file = 0; file < record.begins.size(); ++file)
    content += fmt::format("{} {} {}\n", record.identities[file], record.begins[file].documents,
                           record.begins[file].tokens);
  return first_line(content) + "\n" + content;
}

/// nullopt where it is damaged, or of another version.
std::optional<TokensRecord> read_record(const fs::path& path) {
  std::ifstream file(path);
  std::string first;
  std::getline(file, first);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  if (first != first_line(content)) return std::nullopt;
  std::istringstream words(content);
  TokensRecord record;
  TextPlace& reached = record.reached;
  words >> record.made_with >> reached.file >> reached.lines >> reached.bytes >> reached.documents >>
      reached.tokens;
  TextPlace begin;
  for (std::string identity; words >> identity >> begin.documents >> begin.tokens; ++begin.file) {
    record.identities.push_back(identity);
    record.begins.push_back(begin);
  }
  return record;
}

/// What changes with a file, as far as that shows without reading it.
std::string identity_of(const TextFile& file) {
  std::error_code ignored;
  return fingerprint(fmt::format("{}\n{}\n{}\n{}", fs::absolute(file.path).lexically_normal().string(),
                                 fs::file_size(file.path, ignored),
                                 fs::last_write_time(file.path, ignored).time_since_epoch().count(),
                                 file.has_json_lines));
}

}  // namespace

PartialTokens::PartialTokens(const fs::path& out, std::int64_t vocabulary, std::string made_with, Log& log,
                             std::chrono::duration<double> record_every)
    : record_path_(out.string() + ".partial-record"),
      file_(out, "tokens", log),
      type_(vocabulary <= 1 << 8    ? PackedType::u8
            : vocabulary <= 1 << 16 ? PackedType::u16
                                    : PackedType::u32),
      made_with_(std::move(made_with)),
      log_(log),
      record_every_(record_every),
      next_record_(Clock::now() + std::chrono::duration_cast<Clock::duration>(record_every)) {
  std::error_code ignored;
  is_recorded_ = fs::exists(record_path_, ignored);
  remove_leftovers(record_path_, log);
}

PartialTokens::~PartialTokens() {
  if (!is_recorded_) file_.remove();
}

TextPlace PartialTokens::begin(const std::vector<TextFile>& files) {
  identities_.clear();
  begins_.clear();
  for (const TextFile& file : files) identities_.push_back(identity_of(file));
  if (!is_recorded_) {
    file_.cut(0);
    return {};
  }
  const std::optional<TokensRecord> known = read_record(record_path_);
  std::size_t same = 0;  // files
  if (known)
    same = static_cast<std::size_t>(std::ranges::mismatch(known->identities, identities_).in1 -
                                    known->identities.begin());
  const char* const problem =
      !known                           ? "is damaged, or of another version"
      : known->made_with != made_with_ ? "is of another tokenizer, --end-of-text or --field"
      : file_.bytes() < known->reached.tokens * packed_bytes(type_) ? "is of tokens that are not there"
      : same == 0                                                   ? "is of other files"
                                                                    : nullptr;
  if (problem) {
    log_.info(fmt::format("begins anew: '{}' {}", record_path_.string(), problem));
    drop_record();
    file_.cut(0);
    return {};
  }
  begins_.assign(known->begins.begin(), known->begins.begin() + static_cast<std::ptrdiff_t>(same));
  const bool has_changed = same < known->begins.size();
  const TextPlace place = has_changed ? known->begins[same] : known->reached;
  log_start(place, files.size(), has_changed && same < files.size() ? files[same].path.string() : "");
  if (has_changed) record(place);  // while all that the old one names is there
  file_.cut(place.tokens * packed_bytes(type_));
  return place;
}

void PartialTokens::log_start(const TextPlace& place, std::size_t files, const std::string& changed) const {
  const auto file = static_cast<std::size_t>(place.file);
  const std::string where =
      file == files ? "behind the last file"
                    : fmt::format("with file {} of {}{}", file + 1, files,
                                  place.lines == 0 ? "" : fmt::format(" behind its line {}", place.lines));
  log_.info(fmt::format("goes on {}{}: {} and {} were made before it was interrupted", where,
                        changed.empty() ? "" : fmt::format(", since '{}' is not what it was", changed),
                        count_text(place.documents, "document"), count_text(place.tokens, "token")));
}

void PartialTokens::append(const std::vector<std::int32_t>& ids) {
  const auto width = static_cast<int>(packed_bytes(type_));
  packed_.clear();
  for (const std::int32_t id : ids)
    for (int i = 0; i < width; ++i)
      packed_.push_back(static_cast<char>(static_cast<std::uint32_t>(id) >> (8 * i)));
  file_.append(packed_);
}

void PartialTokens::file_begins(const TextPlace& place) {
  if (place.file == std::ssize(begins_)) begins_.push_back(place);
}

void PartialTokens::record(const TextPlace& place) {
  assert(place.tokens <= count());
  const Clock::time_point begin = Clock::now();
  file_.sync();
  publish_text(record_path_, text_of({made_with_, place, identities_, begins_}));
  is_recorded_ = true;
  const Clock::time_point end = Clock::now();
  // So that a slow disk takes a twentieth of the time at most.
  const double took_s = std::chrono::duration<double>(end - begin).count();
  next_record_ = end + std::chrono::duration_cast<Clock::duration>(record_every_ * (1 + 10 * took_s));
}

PackedTokens PartialTokens::finished(const TextPlace& place) {
  if (is_recorded_) record(place);
  return PackedTokens(InputFile(file_.path()), type_, 0, count(), "text");
}

void PartialTokens::drop_record() {
  std::error_code ignored;
  fs::remove(record_path_, ignored);
  is_recorded_ = false;
}

}  // namespace alpa

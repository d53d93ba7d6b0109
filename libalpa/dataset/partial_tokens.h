#pragma once
// Internal to this module.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/dataset/packed_tokens.h"
#include "libalpa/dataset/text_files.h"
#include "libalpa/h5/resumable_file.h"

namespace alpa {

/// A place between two documents of the files of a conversion, and what came of all that is before it.
struct TextPlace {
  std::int64_t file = 0;              ///< of the files in their order; as many as there are: the end
  std::int64_t lines = 0, bytes = 0;  ///< of the file, uncompressed
  std::int64_t documents = 0, tokens = 0;
};

/// Tokens of texts on their way into --out, which outlive the process: they are in OUT.partial-tokens, no
/// wider than the vocabulary takes, and OUT.partial-record says what they were made of, and up to where. The
/// next process goes on from there with what is still the same.
class PartialTokens {
 public:
  /// `made_with` stands for all but the files that the tokens depend on. Throws Error(input) where another
  /// process is writing `out`.
  PartialTokens(const std::filesystem::path& out, std::int64_t vocabulary, std::string made_with, Log& log,
                std::chrono::duration<double> record_every = std::chrono::seconds(2));

  /// Removes what no record names.
  ~PartialTokens();
  PartialTokens(const PartialTokens&) = delete;
  PartialTokens& operator=(const PartialTokens&) = delete;

  /// Where to go on with these files: at their beginning, or as far as a record says that they were made
  /// tokens of and have not changed since. The tokens behind it are gone.
  TextPlace begin(const std::vector<TextFile>& files);

  void append(const std::vector<std::int32_t>& ids);
  std::int64_t count() const { return file_.bytes() / packed_bytes(type_); }

  /// At `place` a file begins, or is gone on with.
  void file_begins(const TextPlace& place);

  bool record_is_due() const { return Clock::now() >= next_record_; }

  /// Notes on disk that the tokens before `place`, which are all appended, are made.
  void record(const TextPlace& place);

  /// All is made: `place` is the end, which is recorded where a place before was.
  PackedTokens finished(const TextPlace& place);

  /// Nothing goes on with them from now on: they go when this goes.
  void drop_record();

 private:
  using Clock = std::chrono::steady_clock;

  void log_start(const TextPlace& place, std::size_t files, const std::string& changed) const;

  std::filesystem::path record_path_;
  ResumableFile file_;
  PackedType type_;
  std::string made_with_, packed_;
  Log& log_;
  std::chrono::duration<double> record_every_;
  Clock::time_point next_record_;
  bool is_recorded_;
  std::vector<std::string> identities_;  ///< of the files
  std::vector<TextPlace> begins_;        ///< of the files so far
};

}  // namespace alpa

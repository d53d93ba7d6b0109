#include "libalpa/dataset/convert.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/units.h"
#include "libalpa/dataset/byte_stream.h"
#include "libalpa/dataset/converted_file.h"
#include "libalpa/dataset/encoded_texts.h"
#include "libalpa/dataset/image_file.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/dataset/planted_labels.h"
#include "libalpa/dataset/synthetic_trees.h"
#include "libalpa/dataset/text_files.h"
#include "libalpa/dataset/token_formats.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/h5/rows.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

/// What sources are, by their first bytes and, where they may be anything, their names. Only texts come in
/// several files, and a tokenizer is given for texts, whatever their names.
SourceKind kind_of(const ConvertSettings& settings) {
  const fs::path& source = settings.sources.front();
  if (settings.sources.size() > 1) return SourceKind::text;
  const bool has_tokenizer = !settings.tokenizer.empty();
  std::error_code ignored;
  if (fs::is_directory(source, ignored))
    return !has_tokenizer && holds_images(source) ? SourceKind::images : SourceKind::text;
  const std::string name = source.filename().string();
  // A Megatron pair may be named without its endings.
  if (!fs::exists(source, ignored))
    return names_drawn_graphs(source.string()) ? SourceKind::drawn_graphs : SourceKind::tokens;
  const std::string first = first_bytes_of(source, format_bytes);
  if (is_idx(first)) return SourceKind::idx;
  if (is_hdf5(first) || is_llmc(first) || is_megatron_index(first)) return SourceKind::tokens;
  if (name.ends_with(".bin") || name.ends_with(".idx")) return SourceKind::tokens;
  const bool is_table = name.ends_with(".csv") || name.ends_with(".csv.gz");
  return is_table && !has_tokenizer ? SourceKind::csv : SourceKind::text;
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// What images are brought to; {} where they stay as they are.
Shape image_shape(const ConvertSettings& settings) {
  const Shape shape = wanted_shape(settings);
  if (shape.size() != 3 || (shape[2] != 1 && shape[2] != 3)) return {};
  if (std::max(shape[0], shape[1]) > most_image_extent)
    throw Error(ErrorKind::usage, fmt::format("--shape '{}' is too large for an image", settings.shape),
                fmt::format("height and width of at most {}", most_image_extent));
  return shape;
}

void refuse_settings_of_samples(const ConvertSettings& settings, const char* holds) {
  if (settings.labels.empty() && settings.shape.empty() && settings.subtract == 0 && settings.divide == 0)
    return;
  throw Error(ErrorKind::usage, fmt::format("{} holds {}, not samples", source_names(settings), holds),
              "leave out --labels, --shape, --subtract and --divide, or say --from what it is");
}

void convert_treebank(const ConvertSettings& settings, const Provenance& provenance, Log& log) {
  refuse_settings_of_samples(settings, "trees");
  const TreebankSamples trees =
      open_treebank(settings.sources.front(),
                    settings.words.empty() ? std::vector<std::string>{} : words_of(settings.words),
                    folder_of(settings.out), log);
  convert_graphs(*trees.graphs, trees.facts, settings, provenance, log);
}

void convert_drawn_graphs(const ConvertSettings& settings, const Provenance& provenance, Log& log) {
  refuse_settings_of_samples(settings, "graphs");
  const std::string name = settings.sources.front().string();
  if (!names_drawn_graphs(name))
    throw Error(ErrorKind::input, fmt::format("nothing that is drawn is called '{}'", name),
                "synthetic-trees:8544, complete-trees:128:1000 or chains:8544");
  const GraphFacts facts{SyntheticTrees::usual_words, kPlantedClasses, {}};
  convert_graphs(*make_drawn_graphs(name, {facts.vocabulary, facts.classes, 2},
                                    static_cast<std::uint64_t>(settings.seed)),
                 facts, settings, provenance, log);
}

void refuse_end_of_text(const ConvertSettings& settings, const char* why) {
  if (settings.end_of_text == "auto") return;
  throw Error(ErrorKind::usage,
              fmt::format("--end-of-text has no effect: {} {}", source_names(settings), why), "leave it out");
}

void refuse_field(const ConvertSettings& settings) {
  if (settings.field == ConvertSettings{}.field) return;
  throw Error(ErrorKind::usage,
              fmt::format("--field has no effect: {} holds no JSON lines", source_names(settings)),
              "leave it out, or say --from jsonl");
}

/// A tokenizer, and the end of a text as the settings ask for it.
struct AskedTokenizer {
  AskedTokenizer(const std::string& name, const ConvertSettings& settings)
      : file(read_tokenizer_file(name)),
        tokenizer(make_tokenizer(file)),
        end_of_text(end_of_text_id(*tokenizer, alpa::end_of_text(file, *tokenizer), settings)) {}

  MadeBy made_by() const { return {file, tokenizer->description(), tokenizer->vocabulary(), end_of_text}; }

  TokenizerFile file;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<std::int32_t> end_of_text;
};

/// What stands for all that tokens depend on beside the texts.
std::string maker_sign(const AskedTokenizer& asked, const std::string& field) {
  return fingerprint(
      fmt::format("{}\n{}\n{}", fingerprint(asked.file.content), asked.end_of_text.value_or(-1), field));
}

void convert_texts(const ConvertSettings& settings, const Provenance& provenance, Log& log) {
  const AskedTokenizer asked(settings.tokenizer.empty() ? "bytes" : settings.tokenizer, settings);
  const std::vector<TextFile> files = text_files(settings, log);
  if (std::ranges::none_of(files, &TextFile::has_json_lines)) refuse_field(settings);
  const auto write = [&](const TokenSource& tokens) {
    convert_tokens(tokens, asked.made_by(), settings, provenance, log);
  };
  // The bytes of one text are in its file already.
  if (files.size() == 1 && !files[0].has_json_lines && asked.file.content == "bytes" && !asked.end_of_text)
    return write(*open_text_tokens(open_uncompressed(files[0].path, folder_of(settings.out), log)));
  PartialTokens tokens(settings.out, asked.tokenizer->vocabulary(), maker_sign(asked, settings.field), log);
  remove_leftovers(settings.out, log);
  if (settings.hold_out > 0) remove_leftovers(hold_out_file(settings), log);
  write(*encode_texts(files, *asked.tokenizer, asked.end_of_text, settings.field, tokens, log));
  tokens.drop_record();
}

/// Of tokens that are there: what --tokenizer says made them, else what their file says. Where documents end
/// in them is known only where it is said.
std::optional<MadeBy> maker_of(const ConvertSettings& settings) {
  const fs::path& source = settings.sources.front();
  std::error_code ignored;
  const bool carries_one = fs::is_regular_file(source, ignored) &&
                           is_hdf5(first_bytes_of(source, format_bytes)) && has_dataset(source, "/tokenizer");
  if (settings.tokenizer.empty() && !carries_one) {
    refuse_end_of_text(settings, "holds tokens without their tokenizer");
    return std::nullopt;
  }
  MadeBy made_by =
      AskedTokenizer(settings.tokenizer.empty() ? source.string() : settings.tokenizer, settings).made_by();
  if (settings.end_of_text == "auto") made_by.end_of_text = made_by.file.end_of_text;
  return made_by;
}

/// What is for texts alone, or for one source.
void check_settings_of_texts(const ConvertSettings& settings, SourceKind kind) {
  const bool are_texts = kind == SourceKind::text || kind == SourceKind::json_lines;
  if (settings.sources.size() > 1 && !are_texts)
    throw Error(ErrorKind::usage, fmt::format("{}: only texts may be several", source_names(settings)),
                "a file of its own of each");
  if (are_texts) return;
  refuse_field(settings);
  if (kind == SourceKind::tokens) return;
  refuse_end_of_text(settings, "holds no texts");
  if (!settings.tokenizer.empty())
    throw Error(
        ErrorKind::usage,
        fmt::format("--tokenizer is for texts and tokens, and {} holds neither", source_names(settings)),
        "leave it out, or say --from text");
}

}  // namespace

std::int64_t held_out_rows(const ConvertSettings& settings, std::int64_t rows) {
  if (rows < 1)
    throw Error(ErrorKind::input, fmt::format("{} is empty", source_names(settings)), "check the path");
  const std::int64_t held_out = std::llround(settings.hold_out * static_cast<double>(rows));
  if (settings.hold_out > 0 && (held_out == 0 || held_out == rows))
    throw Error(ErrorKind::input,
                fmt::format("{} of {} is {}", settings.hold_out, count_text(rows, "row"),
                            held_out == 0 ? "none" : "all"),
                "another share for --hold-out");
  return held_out;
}

std::vector<fs::path> files_read(const ConvertSettings& settings) {
  std::vector<fs::path> files;
  for (const fs::path& source : settings.sources) {
    for (fs::path& file : data_files(source.string())) files.push_back(std::move(file));
    if (const fs::path labels = idx_labels_beside(source); !labels.empty()) files.push_back(labels);
  }
  if (!settings.tokenizer.empty() && settings.tokenizer != "bytes") files.push_back(settings.tokenizer);
  return files;
}

std::string source_names(const ConvertSettings& settings) {
  const std::string first = fmt::format("'{}'", settings.sources.front().string());
  const std::int64_t others = std::ssize(settings.sources) - 1;
  return others == 0 ? first : fmt::format("{} and {}", first, count_text(others, "other"));
}

std::string where_rows_went(const ConvertSettings& settings, std::int64_t kept, std::int64_t held_out) {
  const std::string text = fmt::format("{} in '{}'", kept, settings.out.string());
  return held_out == 0 ? text
                       : fmt::format("{}, {} in '{}'", text, held_out, hold_out_file(settings).string());
}

void convert(const ConvertSettings& settings, const Provenance& provenance, Log& log) {
  in_step(fmt::format("converting {}", source_names(settings)), [&] {
    AtomicFile{settings.out};  // a folder that cannot be written is noticed before the reading
    const fs::path& source = settings.sources.front();
    const SourceKind kind = settings.from == SourceKind::automatic ? kind_of(settings) : settings.from;
    if (!settings.words.empty() && kind != SourceKind::treebank)
      throw Error(ErrorKind::usage, fmt::format("{} is not a treebank", source_names(settings)),
                  "leave out --words, or say --from ptb-trees");
    check_settings_of_texts(settings, kind);
    const fs::path scratch = folder_of(settings.out);
    const auto samples = [&](std::unique_ptr<SampleSource> opened) {
      convert_samples(*opened, settings, provenance, log);
    };
    switch (kind) {
      case SourceKind::idx:
        return samples(open_idx_samples(source, settings.labels, scratch, log));
      case SourceKind::images:
        return samples(open_image_folder(source, image_shape(settings)));
      case SourceKind::csv:
        return samples(open_csv_samples(source, settings.label_column, scratch, log));
      case SourceKind::treebank:
        return convert_treebank(settings, provenance, log);
      case SourceKind::drawn_graphs:
        return convert_drawn_graphs(settings, provenance, log);
      case SourceKind::text:
      case SourceKind::json_lines:
        refuse_settings_of_samples(settings, "tokens");
        return convert_texts(settings, provenance, log);
      case SourceKind::tokens:
      case SourceKind::automatic:
        refuse_settings_of_samples(settings, "tokens");
        return convert_tokens(*open_tokens(source.string()), maker_of(settings), settings, provenance, log);
    }
  });
}

}  // namespace alpa

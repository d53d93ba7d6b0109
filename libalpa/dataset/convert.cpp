#include "libalpa/dataset/convert.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/dataset/byte_stream.h"
#include "libalpa/dataset/converted_file.h"
#include "libalpa/dataset/image_file.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/dataset/planted_labels.h"
#include "libalpa/dataset/synthetic_trees.h"
#include "libalpa/dataset/token_formats.h"
#include "libalpa/h5/atomic_file.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

/// What a source is, by its first bytes and, where they may be anything, its name.
SourceKind kind_of(const fs::path& source) {
  std::error_code ignored;
  if (fs::is_directory(source, ignored)) return SourceKind::images;
  const std::string name = source.filename().string();
  // A Megatron pair may be named without its endings.
  if (!fs::exists(source, ignored))
    return names_drawn_graphs(source.string()) ? SourceKind::drawn_graphs : SourceKind::tokens;
  const std::string first = first_bytes_of(source, format_bytes);
  if (is_idx(first)) return SourceKind::idx;
  if (is_hdf5(first) || is_llmc(first) || is_megatron_index(first)) return SourceKind::tokens;
  if (name.ends_with(".bin") || name.ends_with(".idx")) return SourceKind::tokens;
  if (name.ends_with(".csv") || name.ends_with(".csv.gz")) return SourceKind::csv;
  check_is_text(source, first);
  return SourceKind::text;
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
  throw Error(ErrorKind::usage, fmt::format("'{}' holds {}, not samples", settings.source.string(), holds),
              "leave out --labels, --shape, --subtract and --divide, or say --from what it is");
}

void convert_treebank(const ConvertSettings& settings, const Provenance& provenance, Log& log) {
  refuse_settings_of_samples(settings, "trees");
  const TreebankSamples trees = open_treebank(
      settings.source, settings.words.empty() ? std::vector<std::string>{} : words_of(settings.words),
      folder_of(settings.out), log);
  convert_graphs(*trees.graphs, trees.facts, settings, provenance, log);
}

void convert_drawn_graphs(const ConvertSettings& settings, const Provenance& provenance, Log& log) {
  refuse_settings_of_samples(settings, "graphs");
  const std::string name = settings.source.string();
  if (!names_drawn_graphs(name))
    throw Error(ErrorKind::input, fmt::format("nothing that is drawn is called '{}'", name),
                "synthetic-trees:8544, complete-trees:128:1000 or chains:8544");
  const GraphFacts facts{SyntheticTrees::usual_words, kPlantedClasses, {}};
  convert_graphs(*make_drawn_graphs(name, {facts.vocabulary, facts.classes, 2},
                                    static_cast<std::uint64_t>(settings.seed)),
                 facts, settings, provenance, log);
}

}  // namespace

std::int64_t held_out_rows(const ConvertSettings& settings, std::int64_t rows) {
  if (rows < 1)
    throw Error(ErrorKind::input, fmt::format("'{}' is empty", settings.source.string()), "check the path");
  const std::int64_t held_out = std::llround(settings.hold_out * static_cast<double>(rows));
  if (settings.hold_out > 0 && (held_out == 0 || held_out == rows))
    throw Error(ErrorKind::input,
                fmt::format("{} of {} is {}", settings.hold_out, count_text(rows, "row"),
                            held_out == 0 ? "none" : "all"),
                "another share for --hold-out");
  return held_out;
}

std::vector<fs::path> files_read(const ConvertSettings& settings) {
  std::vector<fs::path> files = data_files(settings.source.string());
  if (const fs::path labels = idx_labels_beside(settings.source); !labels.empty()) files.push_back(labels);
  return files;
}

std::string where_rows_went(const ConvertSettings& settings, std::int64_t kept, std::int64_t held_out) {
  const std::string text = fmt::format("{} in '{}'", kept, settings.out.string());
  return held_out == 0 ? text
                       : fmt::format("{}, {} in '{}'", text, held_out, hold_out_file(settings).string());
}

void convert(const ConvertSettings& settings, const Provenance& provenance, Log& log) {
  in_step(fmt::format("converting '{}'", settings.source.string()), [&] {
    AtomicFile{settings.out};  // a folder that cannot be written is noticed before the reading
    const SourceKind kind = settings.from == SourceKind::automatic ? kind_of(settings.source) : settings.from;
    if (!settings.words.empty() && kind != SourceKind::treebank)
      throw Error(ErrorKind::usage, fmt::format("'{}' is no treebank", settings.source.string()),
                  "leave out --words, or say --from ptb-trees");
    const fs::path scratch = folder_of(settings.out);
    const auto samples = [&](std::unique_ptr<SampleSource> source) {
      convert_samples(*source, settings, provenance, log);
    };
    switch (kind) {
      case SourceKind::idx:
        return samples(open_idx_samples(settings.source, settings.labels, scratch, log));
      case SourceKind::images:
        return samples(open_image_folder(settings.source, image_shape(settings)));
      case SourceKind::csv:
        return samples(open_csv_samples(settings.source, settings.label_column, scratch, log));
      case SourceKind::treebank:
        return convert_treebank(settings, provenance, log);
      case SourceKind::drawn_graphs:
        return convert_drawn_graphs(settings, provenance, log);
      case SourceKind::text:
        refuse_settings_of_samples(settings, "tokens");
        return convert_tokens(*open_text_tokens(open_uncompressed(settings.source, scratch, log)), settings,
                              provenance, log);
      case SourceKind::tokens:
      case SourceKind::automatic:
        refuse_settings_of_samples(settings, "tokens");
        return convert_tokens(*open_tokens(settings.source.string()), settings, provenance, log);
    }
  });
}

}  // namespace alpa

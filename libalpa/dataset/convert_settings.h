#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace alpa {

class OptionsVisitor;

enum class SourceKind { automatic, text, tokens, json_lines, idx, images, csv, treebank, drawn_graphs };
enum class RowOrder { shuffled, kept };

/// What becomes of a source of tokens, labelled samples or graphs.
struct ConvertSettings {
  std::vector<std::filesystem::path> sources;  ///< several only of texts
  std::filesystem::path out;
  SourceKind from = SourceKind::automatic;

  double hold_out = 0;                  ///< share of the rows that goes to a file of its own
  std::filesystem::path hold_out_file;  ///< "": `out` with "-held-out" before its ending

  // Texts only.
  std::string tokenizer;             ///< as open_tokenizer() takes it; "": bytes. Of tokens, what made them
  std::string end_of_text = "auto";  ///< behind each document: "auto", "none", a special token or an id
  std::string field = "text";        ///< of JSON lines

  // Samples only.
  std::filesystem::path labels;   ///< of IDX images
  std::int64_t label_column = 0;  ///< of a CSV, from 1 on; 0: the last
  std::string shape;              ///< of one sample, e.g. "8x8x1"; "": as the source has it. Images of
                      ///< a folder are scaled and cut to a shape of three extents, the last 1 or 3
  double subtract = 0, divide = 0;
  std::string image_name = "images", label_name = "labels";
  RowOrder order = RowOrder::shuffled;
  std::int64_t seed = 0;

  std::filesystem::path words;  ///< of a treebank: a converted one whose vocabulary is taken; "": its own
};

/// The one list of the settings that are no files (libalpa/base/options.h).
void describe(ConvertSettings&, OptionsVisitor&);

/// Where held-out rows go.
std::filesystem::path hold_out_file(const ConvertSettings& settings);

}  // namespace alpa

#include "libalpa/dataset/convert_settings.h"

#include "libalpa/base/options.h"

namespace alpa {

void describe(ConvertSettings& s, OptionsVisitor& visit) {
  visit.field("from", s.from, "what SOURCE is",
              {{"auto", SourceKind::automatic, "by its first bytes and its name"},
               {"text", SourceKind::text, "any file, or all in a folder: each a text, see --tokenizer"},
               {"jsonl", SourceKind::json_lines, "lines of JSON objects with a text in each, see --field"},
               {"tokens", SourceKind::tokens, "token file of llm.c, Megatron pair, HDF5 file with /tokens"},
               {"idx", SourceKind::idx, "images of the MNIST family, see --labels"},
               {"images", SourceKind::images,
                "folder with a subfolder of PNG, JPEG, binary PGM or PPM images for each class"},
               {"csv", SourceKind::csv, "lines of numbers, one of them the label"},
               {"ptb-trees", SourceKind::treebank,
                "lines of trees with a label at every vertex: (3 (2 It) (4 (2 's) (3 good))), see --words"},
               {"drawn-graphs", SourceKind::drawn_graphs,
                "no file: SOURCE is synthetic-trees[:SAMPLES], complete-trees:LEAVES[:SAMPLES] or "
                "chains[:SAMPLES], which --data takes too"}});
  visit.field("field", s.field, "of each line of JSON lines, the text in it", "NAME");
  visit.field(
      "end_of_text", s.end_of_text,
      "what stands behind each document, a file or a line of JSON lines: auto (what the tokenizer has for "
      "it), none, a special token (<|eot_id|>) or an id",
      "auto|none|TOKEN");
  visit.field("label_column", s.label_column, "column of a CSV's labels, from 1 on; 0: the last",
              at_least(0));
  visit.field("shape", s.shape,
              "shape of one sample, as the model's input has it; where it is not given, images are "
              "height x width x channels, lines of a CSV a row. Images of a folder are scaled to cover "
              "HEIGHTxWIDTHx3 (or x1: grey) and cut to it; without it they must be of one shape",
              "NxNx...");
  visit.field("subtract", s.subtract, "taken from every number");
  visit.field("divide", s.divide,
              "divides every number; 0: as they are, but bytes of images are stored as bytes, which training "
              "divides by 255",
              at_least(0));
  visit.field("image", s.image_name, "dataset of the samples, as the model's input is called", "NAME");
  visit.field("label", s.label_name, "dataset of the labels, as the model's input is called", "NAME");
  visit.field("order", s.order, "order of samples; tokens keep theirs",
              {{"shuffled", RowOrder::shuffled, "training keeps the last rows for evaluation"},
               {"kept", RowOrder::kept, "as in SOURCE"}});
  visit.field("seed", s.seed, "of the shuffling, and of what is drawn: the same gives the same file",
              at_least(0));
  visit.field("hold_out", s.hold_out, "share of the rows, the last, that goes to a file of its own",
              from_below(0, 1));
}

std::filesystem::path hold_out_file(const ConvertSettings& settings) {
  if (!settings.hold_out_file.empty()) return settings.hold_out_file;
  std::filesystem::path file = settings.out;
  return file.replace_filename(settings.out.stem().string() + "-held-out" +
                               settings.out.extension().string());
}

}  // namespace alpa

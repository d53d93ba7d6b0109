#pragma once
// Internal to this module: the kinds of data that are graphs, one source file each.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/dataset/graph_source.h"

namespace alpa {

std::unique_ptr<GraphSource> open_hdf5_graphs(const std::filesystem::path&, const GraphLimits&);

/// Whether data of that name is drawn.
bool names_drawn_graphs(const std::string& data);

/// Draws what names_drawn_graphs() accepts; `seed` 0 is what open_graphs() draws. Throws Error(input) where
/// the name is not complete, or the model takes too few classes or children.
std::unique_ptr<GraphSource> make_drawn_graphs(const std::string& data, const GraphLimits&,
                                               std::uint64_t seed = 0);

/// What is stored of graphs beside them.
struct GraphFacts {
  std::int64_t vocabulary = 0, classes = 0;
  std::vector<std::string> words;  ///< by token; {} where these stand for none
};

/// The word of id 0, which stands for all that the vocabulary does not have.
inline constexpr const char* unknown_word = "<unk>";

/// A tree on each line, as in the Penn Treebank, with a label at every vertex: (3 (2 It) (4 (2 's) ...)).
/// Labels are integers from 0 on. Words are parted by ASCII spaces alone, so that one may contain a
/// no-break space. `words` is the vocabulary, or {} for that of the file: its words by how often they occur,
/// of those that occur as often the first to come first. Lines may be long or many: trees are kept in a
/// scratch file in `scratch_folder`; the words, and two numbers for each tree, are held. Plain or gzip.
/// Throws Error(input) that names file, line and column.
struct TreebankSamples {
  std::unique_ptr<GraphSource> graphs;
  GraphFacts facts;
};
TreebankSamples open_treebank(const std::filesystem::path&, std::vector<std::string> words,
                              const std::filesystem::path& scratch_folder, Log& log);

/// The vocabulary of a file that open_treebank() was converted to.
std::vector<std::string> words_of(const std::filesystem::path& converted);

}  // namespace alpa

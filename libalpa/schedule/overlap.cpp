#include "libalpa/schedule/overlap.h"

#include "libalpa/base/words.h"

namespace alpa {
namespace {

constexpr Word<Overlap> kOverlaps[] = {
    {"none", Overlap::none, "computation and communication take turns"},
    {"transfers", Overlap::transfers, "messages between stages go on while a stage computes"},
    {"all", Overlap::all, "likewise, and collectives too"},
};

}  // namespace

std::span<const Word<Overlap>> overlap_words() { return kOverlaps; }
std::string overlap_name(Overlap overlap) { return name_of(overlap, overlap_words()); }
Overlap find_overlap(const std::string& name) { return value_named(name, overlap_words(), "overlap"); }

}  // namespace alpa

#include "libalpa/dataset/graph_formats.h"

namespace alpa {

std::unique_ptr<GraphSource> open_graphs(const std::string& data, const GraphLimits& limits) {
  return names_drawn_graphs(data) ? make_drawn_graphs(data, limits) : open_hdf5_graphs(data, limits);
}

}  // namespace alpa

#pragma once
#include <memory>
#include <string>

#include "libalpa/checkpoint/data_identity.h"
#include "libalpa/dataset/array_source.h"
#include "libalpa/dataset/graph_source.h"
#include "libalpa/dataset/token_source.h"
#include "libalpa/graph/graph.h"
#include "libalpa/trainer/batch_reader.h"
#include "libalpa/trainer/graph_batches.h"

namespace alpa {

/// The data of a run, checked against the model that it is to train.
struct TrainingData {
  std::unique_ptr<TokenSource> tokens;  ///< or
  std::unique_ptr<ArraySource> arrays;  ///< or
  std::unique_ptr<GraphSource> graphs;
  std::unique_ptr<BatchReader> reader;
};

/// Opens what `--data` names: open_tokens() for a model of tokens, open_graphs() for one over graphs,
/// open_arrays() for one with inputs of its own. Throws Error(input) where it cannot be read, is too short
/// for one sample, has ids that the model does not know, or where a model of tokens looks up none. See
/// SampleOrder for what is held out.
TrainingData open_training_data(const std::string& data, const Graph&, const TrainingOptions&,
                                double held_out_fraction, const GraphBatching& = {}, std::int64_t steps = 0);

/// What the samples are of. Reads the data (content_fingerprint()); `evaluation` may be nullptr.
DataIdentity data_identity(const TrainingData& data, const TrainingData* evaluation, const TrainingOptions&);

}  // namespace alpa

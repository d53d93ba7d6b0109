#pragma once
#include <memory>
#include <string>

#include "libalpa/graph/graph.h"
#include "libalpa/trainer/batch_reader.h"
#include "libalpa/trainer/token_source.h"

namespace alpa {

/// The data of a run, checked against the model that it is to train.
struct TrainingData {
  std::unique_ptr<TokenSource> source;
  std::unique_ptr<BatchReader> reader;
};

/// Opens what `--data` names (see open_tokens()). Throws Error(input) where it cannot be read, is too short
/// for one sample, has ids that the model does not know, or where the model looks up no tokens.
TrainingData open_training_data(const std::string& data, const Graph&, const TrainingOptions&);

}  // namespace alpa

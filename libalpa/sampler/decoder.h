#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/checkpoint/checkpoint.h"
#include "libalpa/runtime/executor.h"
#include "libalpa/runtime/train_ranks.h"
#include "libalpa/sampler/decoding_graph.h"

namespace alpa {

/// A model that is given tokens and scores what comes next, on the ranks of a plan. All ranks call it alike.
class Decoder {
 public:
  /// Of so many samples, each given `tokens` in a step. Keeps references. Throws as decoding_graph() and
  /// decoding_plan(), and Error(allocation) on every rank where one has not the memory.
  Decoder(const Plan& trained, const Graph& training, std::int64_t samples, const TrainRanks&,
          std::int64_t tokens = 1);

  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Takes the parameters of a checkpoint of the trained model, whatever plan it was trained under. Throws
  /// Error(input) where it is of another.
  CheckpointFacts load(const std::filesystem::path& checkpoint, Log&);
  /// The part of this rank alone.
  CheckpointFacts load_own(const std::filesystem::path& checkpoint, const BytesRead&);

  /// Gives each sample its next tokens, [samples, tokens], at their places, below sequence(), from 0 on and
  /// none left out; -1: there is none. Throws Error(non_finite) on every rank where scores are.
  void run(std::span<const std::int32_t> tokens, std::span<const std::int32_t> places);

  /// Of each word to come after each of these, [samples, tokens, vocabulary], on every rank; until the next
  /// call.
  std::span<const float> scores();

  std::int64_t vocabulary() const { return decoding_.vocabulary; }
  std::int64_t sequence() const { return decoding_.sequence; }  ///< the most tokens of a sample
  std::optional<std::int32_t> document_end() const { return decoding_.document_end; }

 private:
  void fill(std::size_t input, std::span<const std::int32_t> values);
  void check_memory(std::int64_t samples, std::int64_t tokens) const;
  void find_own_tile();
  void read_own_tile();
  const TensorType& type_of_scores() const;

  const Graph& training_;
  const TrainRanks& ranks_;
  DecodingGraph decoding_;
  Plan plan_;
  Program program_;
  std::unique_ptr<Stream> control_;
  std::unique_ptr<Executor> executor_;
  std::optional<StateTile> own_tile_;  ///< of the scores, that no rank before this one has
  std::vector<std::byte> tile_;        ///< its values
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<float> scores_, words_;  ///< [samples, tokens, padded vocabulary], and without padding
};

}  // namespace alpa

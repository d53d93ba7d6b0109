#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "libalpa/base/tensor_type.h"
#include "libalpa/checkpoint/data_identity.h"
#include "libalpa/checkpoint/loss_scale.h"
#include "libalpa/graph/graph.h"
#include "libalpa/h5/provenance.h"
#include "libalpa/h5/tensor_file.h"

namespace alpa {

/// A box of one of the graph's states, whose values lie somewhere in row-major order of the box and are
/// copied to and from host memory a stretch at a time: `first` is in bytes.
struct HeldTile {
  StateIndex state;
  Shape origin, shape;  ///< in the whole tensor, in elements
  int term = 0;         ///< of one that devices hold in terms
  std::function<void(std::int64_t first, std::span<std::byte> into)> read;
  std::function<void(std::int64_t first, std::span<const std::byte> from)> write;
};

/// How many terms the devices of a plan hold of each state (State::holds_terms); empty: one of each.
using StateTerms = Indexed<StateIndex, int>;

/// A state as files have it: without padding, and where it may be held in terms with these as its first
/// dimension.
TensorType stored_type(const Graph&, const State&, int terms);
/// Likewise a tile; empty where it is padding alone.
TensorRegion stored_region(const State&, const Shape& origin, const Shape& shape, int term);

/// What a checkpoint says beside its tensors.
struct CheckpointFacts {
  std::int64_t step = 0;                     ///< steps done
  std::int64_t samples = 0;                  ///< samples seen, which is the number of the next one
  DataIdentity data = {};                    ///< what the samples are of
  std::string training_options;              ///< kept_options() of the run
  std::optional<LossScale> loss_scale = {};  ///< of f16
  bool operator==(const CheckpointFacts&) const = default;
};

/// Digest of names and types of all states, whatever their terms: what two plans of one model have in common,
/// however they split it.
std::string state_fingerprint(const Graph&);

/// What writes a checkpoint: every state of the graph as a whole tensor under its name, and the facts. The
/// file appears under its name (in a folder that is made where it is missing) when it is published, and
/// replaces one that is there.
///
/// Collective over `ranks` (nullopt: this process alone). `tiles` are what this rank holds, and are read as
/// the file is written; those of all ranks cover every state, and where tiles overlap their values are the
/// same. Equal states and facts give equal bytes outside /provenance, whatever the tiles. It and the writer's
/// calls throw alike on all ranks: Error(input) where the folder is not writable, Error(run_time) e.g. where
/// the disk is full.
std::unique_ptr<TensorWriter> checkpoint_writer(const std::filesystem::path& file,
                                                const CheckpointFacts& facts, const Graph& graph,
                                                std::span<const HeldTile> tiles, const Provenance& provenance,
                                                std::optional<WritingRanks> ranks,
                                                const StateTerms& terms = {});

/// Writes and publishes it at once.
void save_checkpoint(const std::filesystem::path& file, const CheckpointFacts& facts, const Graph& graph,
                     std::span<const HeldTile> tiles, const Provenance& provenance,
                     std::optional<WritingRanks> ranks, const StateTerms& terms = {});

/// For errors: "saving the checkpoint of step 100".
std::string saving_text(std::int64_t step);

/// Puts the whole of a state into host memory for it.
using FillState = std::function<void(const State&, void* values)>;

/// The same by this process alone, with one state at a time in memory.
void save_checkpoint(const std::filesystem::path& file, const CheckpointFacts& facts, const Graph& graph,
                     const FillState& fill, const Provenance& provenance);

/// Of a checkpoint without its graph: puts the whole of a tensor into host memory for it.
struct FilledTensor {
  std::string name;
  TensorType type;
  std::function<void(void* values)> fill;
};

/// Likewise, of a model with this state_fingerprint().
void save_checkpoint(const std::filesystem::path& file, const CheckpointFacts& facts,
                     const std::string& fingerprint, std::span<const FilledTensor> tensors,
                     const Provenance& provenance);

/// Whether a tensor of a checkpoint is a moment, a master or the like of a parameter there, whose name it
/// bears, and one more word.
bool belongs_to_parameter(const std::map<std::string, TensorType>& tensors, const std::string& name);

/// Fills the tiles from a checkpoint of the same model, however many ranks and whatever plan wrote it, a few
/// MiB at a time. Where `terms` are others than those of the file, the file's are added up to be the first of
/// them. Each rank reads by itself. Throws Error(input) where the file is damaged, or its states
/// differ from the graph's in name or type, with a table of the differences.
CheckpointFacts load_checkpoint(const std::filesystem::path& file, const Graph& graph,
                                std::span<const HeldTile> tiles, const BytesRead& read = {},
                                const StateTerms& terms = {});

/// How many states a checkpoint has in other terms than these.
int states_in_other_terms(const std::filesystem::path& file, const Graph&, const StateTerms&);

/// The tensors of a checkpoint. Throws Error(input) where it is none.
TensorReader open_checkpoint(const std::filesystem::path& file);

/// What it says beside its tensors, which are not read. Throws Error(input) where it is none, or no whole
/// file.
CheckpointFacts checkpoint_facts(const std::filesystem::path& file);

/// Reads all of a checkpoint. Throws Error(input) where it is damaged, or is none.
CheckpointFacts verify_checkpoint(const std::filesystem::path& file, const BytesRead& read = {});

}  // namespace alpa

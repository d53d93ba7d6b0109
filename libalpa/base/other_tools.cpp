#include "libalpa/base/other_tools.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace alpa {
namespace {

/// One thing: its name here, what others call it, and where it is set. A name of others may stand in several
/// rows: the first counts that is on offer, or that has a place.
struct Thing {
  std::string_view here, others, where;
};

constexpr Thing kThings[] = {
    // What is trained, and how: settings of a model file
    {"batch", "batch_size global_batch_size total_batch_size train_batch_size bs",
     "batch in [training] of the model file: samples of a step, over all ranks"},
    {"micro_batches",
     "micro_batch micro_batch_size microbatch_size per_device_batch_size per_device_train_batch_size "
     "device_batch_size gradient_accumulation gradient_accumulation_steps grad_accum grad_accum_steps "
     "accumulate_grad_batches num_microbatches",
     "--micro-batches of alpa-plan: how many a step is cut into, which the planner finds by itself"},
    {"sequence",
     "seq_len seq_length seqlen sequence_length max_length max_len max_seq_len max_seq_length context "
     "context_length context_size ctx_len n_ctx block_size max_position_embeddings",
     "sequence in [training] of the model file: tokens of a sample"},
    {"learning_rate", "lr max_lr peak_lr base_lr",
     "learning_rate in [training] of the model file: the peak of the schedule"},
    {"final_learning_rate", "min_lr lr_min end_lr",
     "final_learning_rate in [training] of the model file, as a fraction of the peak"},
    {"schedule", "scheduler lr_scheduler lr_scheduler_type lr_schedule lr_decay_style",
     "schedule in [training] of the model file"},
    {"warmup_steps", "warmup num_warmup_steps warmup_iters lr_warmup_steps lr_warmup_iters warmup_ratio",
     "warmup_steps in [training] of the model file: a number of steps"},
    {"steps",
     "max_steps num_steps train_steps training_steps total_steps n_steps iterations iters max_iters "
     "num_iters num_iterations train_iters",
     "steps in [training] of the model file, where the schedule ends; alpa-train --steps ends a run earlier"},
    {"", "epochs num_epochs num_train_epochs max_epochs n_epochs",
     "steps in [training] of the model file: epochs x samples / batch"},
    {"precision", "dtype torch_dtype param_dtype compute_dtype mixed_precision amp autocast",
     "precision in [training] of the model file: \"f32\", \"bf16\" or \"f16\""},
    {"", "fp16 float16 half", "precision = \"f16\" in [training] of the model file"},
    {"", "bf16 bfloat16", "precision = \"bf16\" in [training] of the model file"},
    {"", "fp32 float32 tf32", "precision = \"f32\" in [training] of the model file"},
    {"optimizer", "optim optimizer_name optimizer_type", "optimizer in [training] of the model file"},
    {"beta1", "adam_beta1 betas", "beta1 and beta2 in [training] of the model file"},
    {"beta2", "adam_beta2", "beta2 in [training] of the model file"},
    {"epsilon", "eps adam_eps adam_epsilon", "epsilon in [training] of the model file"},
    {"weight_decay", "wd l2", "weight_decay in [training] of the model file"},
    {"gradient_clip",
     "grad_clip clip_grad clip_grad_norm max_grad_norm gradient_clipping gradient_clip_val max_norm",
     "gradient_clip in [training] of the model file: a bound on the norm; 0 for none"},
    {"seed", "random_seed manual_seed rng_seed", "seed in [training] of the model file"},

    // The model
    {"vocabulary", "vocab vocab_size n_vocab padded_vocab_size",
     "vocabulary in [dimensions] of the model file"},
    {"", "hidden hidden_size hidden_dim n_embd n_embed d_model embed_dim embedding_size model_dim",
     "model in [dimensions] of the model file"},
    {"model",
     "hidden hidden_size hidden_dim n_embd n_embed d_model embed_dim embedding_size model_dim dim width", ""},
    {"layers", "num_layers n_layer n_layers nlayers num_hidden_layers depth",
     "layers in [dimensions] of the model file"},
    {"heads", "num_heads n_head n_heads nheads num_attention_heads",
     "heads in [dimensions] of the model file"},
    {"inner", "ffn_hidden_size ffn_dim intermediate_size d_ff mlp_dim",
     "inner in [dimensions] of the model file"},
    {"dropout", "dropout_rate hidden_dropout attention_dropout attn_pdrop resid_pdrop",
     "dropout in [constants] of the model file"},
    {"training", "train trainer train_config hyperparameters", ""},
    {"dimensions", "model architecture arch", ""},
    {"repeat", "times count", ""},

    // The split, which the planner finds
    {"most_tensor_parallel", "tp tensor_parallel tensor_parallel_size", ""},
    {"most_zero", "zero zero_stage", ""},
    {"stages", "pp num_stages pipeline_stages pipeline_parallel", ""},
    {"mesh", "devices gpus num_devices", ""},
    {"", "tp tensor_parallel tensor_parallel_size tensor_model_parallel_size model_parallel_size",
     "leave it out: alpa-plan finds by itself how to split; most_tensor_parallel of --constraints bounds it, "
     "--method "
     "tensor "
     "or --pin ask for it (share/doc/planning.md)"},
    {"",
     "pp pipeline pipeline_parallel pipeline_parallel_size pipeline_model_parallel_size stages num_stages "
     "pipeline_stages",
     "leave it out: alpa-plan finds by itself how to split; stages of --constraints or --pin fix the stages "
     "of a pipeline "
     "(share/doc/planning.md)"},
    {"", "dp data_parallel_size data_parallel",
     "leave it out: alpa-plan finds by itself how to split; --method data-parallel or --pin ask for it "
     "(share/doc/planning.md)"},
    {"", "zero zero_stage fsdp sharding_strategy deepspeed",
     "leave it out: alpa-plan finds by itself how to split; --method zero-1, zero-2 or zero-3 ask for it, "
     "most_zero of "
     "--constraints bounds it"},
    {"", "cp sp context_parallel context_parallel_size sequence_parallel",
     "leave it out: alpa-plan finds by itself how to split; --method sequence or ring ask for it"},
    {"", "ep expert_parallel expert_parallel_size expert_model_parallel_size",
     "leave it out: alpa-plan finds by itself how to split; --method deepspeed-moe asks for it"},
    {"", "parallel parallelism parallelization strategy mesh",
     "leave it out: alpa-plan finds by itself how to split; --pin or --constraints say otherwise"},
    {"rematerialize",
     "recompute remat recompute_granularity gradient_checkpointing activation_checkpointing "
     "checkpoint_activations",
     "--rematerialize of alpa-plan, which finds by itself what to recompute"},
    {"offload", "cpu_offload offload_optimizer", "--offload of alpa-plan"},

    // Machines
    {"devices_per_node",
     "gpus_per_node num_gpus_per_node procs_per_node ranks_per_node accelerators_per_node", ""},
    {"nodes", "nnodes num_nodes n_nodes",
     "nodes in the file of --cluster, for alpa-plan; srun --nodes for the others"},
    {"memory_gib", "memory memory_gb mem gpu_memory memory_mb memory_bytes vram",
     "memory_gib in the file of --cluster: GiB of a device"},
    {"gb_per_s", "bandwidth gbps gbit_per_s gbits_per_s gb_s bandwidth_gbps", ""},
    {"latency_us", "latency latency_ms latency_s", ""},
    {"f32_tflops", "flops tflops fp32_tflops peak_flops", ""},
    {"devices", "gpus num_gpus n_gpus ngpus num_devices world_size", ""},
    {"",
     "gpus num_gpus n_gpus ngpus num_devices world_size nproc nprocs nproc_per_node num_processes np n "
     "ntasks",
     "mpiexec -n N COMMAND, or srun --ntasks N COMMAND, starts N ranks; a plan is for as many as alpa-plan "
     "--devices says"},
    {"", "hostfile machinefile hosts", "mpiexec -f FILE COMMAND; srun knows the nodes of its job"},
    {"",
     "local_rank rank node_rank master_addr master_port rdzv_endpoint rdzv_backend rdzv_id "
     "dist_url init_method",
     "leave it out: mpiexec or srun sets it for each rank"},

    // Files and the run
    {"out", "output output_file output_path o save outfile", ""},
    {"run_dir", "output out o save", ""},
    {"run_dir", "output_dir out_dir save_dir checkpoint_dir ckpt_dir log_dir logdir workdir",
     "--run-dir of alpa-train"},
    {"trace", "output out o save", ""},
    {"", "config cfg conf config_file plan model input i",
     "the file by itself, without an option before it, as the first argument"},
    {"checkpoint_every",
     "save_every save_steps save_interval save_freq checkpoint_interval checkpoint_freq ckpt_interval",
     "--checkpoint-every of alpa-train"},
    {"keep", "save_total_limit keep_last max_checkpoints", "--keep of alpa-train"},
    {"evaluate_every", "eval_every eval_steps eval_interval eval_freq val_check_interval evaluation_interval",
     "--evaluate-every of alpa-train"},
    {"evaluation_batches", "eval_iters eval_batches", "--evaluation-batches of alpa-train"},
    {"evaluation_data", "eval_data val_data valid_data validation_data test_data",
     "--evaluation-data of alpa-train"},
    {"progress_s", "log_every log_interval logging_steps log_steps print_every log_freq",
     "--progress-s of alpa-train: seconds between lines"},
    {"resume",
     "resume_from resume_from_checkpoint load load_checkpoint load_dir checkpoint ckpt ckpt_path init_from "
     "pretrained continue no_resume",
     "--resume of alpa-train: auto, must, never, a checkpoint or the folder of a run"},
    {"max_hours", "max_time time_limit walltime", "--max-hours of alpa-train"},
    {"time_limit", "max_time max_hours", ""},
    {"json", "csv_json as_json", ""},
    {"", "wandb tensorboard report_to tensorboard_dir",
     "alpa-train report RUN_DIR --tensorboard FILE, after or "
     "during the run"},
    {"", "num_workers dataloader_num_workers workers", "leave it out: samples are read ahead by themselves"},
    {"data", "dataset data_path data_dir train_data train_file", "--data of alpa-train"},
    {"log_level", "verbose v debug verbosity", "--log-level debug"},
    {"", "quiet q silent", "--log-level warning"},
    {"help", "usage", "--help"},

    // Values
    {"f16", "fp16 float16 half", ""},
    {"bf16", "bfloat16", ""},
    {"f32", "fp32 float32 float single", ""},
    {"cuda", "gpu gpus nvidia", ""},
    {"adamw", "adam", ""},
    {"cosine", "cosine_with_warmup cosine_decay", ""},
    {"linear", "linear_decay linear_with_warmup", ""},
    {"next_token", "causal causal_lm clm lm autoregressive", ""},
    {"masked", "mlm masked_lm", ""},
    {"data_parallel", "dp", ""},
    {"zero_1", "zero", ""},
    {"zero_3", "fsdp", ""},
    {"tensor", "tp model_parallel", ""},
    {"inter_only", "pp pipeline", ""},
    {"sequence", "sp", ""},
    {"ring", "cp context_parallel", ""},
    {"deepspeed_moe", "ep expert_parallel", ""},
    {"ddp", "pytorch torch", ""},
    {"quick", "low fast min", ""},
    {"thorough", "high max full best", ""},
    {"always", "full yes true on", ""},
    {"never", "no false off none", ""},
    {"auto", "yes true latest last on cpu host", ""},
    {"debug", "verbose trace", ""},
    {"llama", "mistral qwen", ""},
    {"text", "txt", ""},

    // Commands
    {"explain", "show view describe print info inspect summary", ""},
    {"report", "visualize visualise plot draw html page dashboard", ""},
    {"compare", "diff cmp", ""},
    {"check", "validate verify", ""},
    {"what_if", "estimate", ""},
    {"evaluate", "eval test validate validation", ""},
    {"average", "merge mean soup", ""},
    {"convert", "preprocess tokenize prepare", ""},
    {"import", "from_hf from_pretrained", ""},
    {"export", "to_hf save_pretrained", ""},
    {"", "finetune fine_tune",
     "alpa-train import WEIGHTS.safetensors MODEL.toml --out START.h5, then alpa-train "
     "PLAN.h5 --data DATA --run-dir RUN --resume START.h5"},
    {"", "html page pdf png",
     "alpa-plan report PLAN.h5 --out PAGE.html, or alpa-train report RUN_DIR --out PAGE.html"},
    {"sample", "generate generation infer inference predict complete chat", ""},
    {"", "serve", "alpa-train export, for a program that serves: alpa-train sample continues texts"},
    {"", "download pull fetch", "fetch it yourself; alpa-train import takes weights from safetensors files"},
};

bool lists(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace

std::string plain_word(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string plain(word);
  for (char& c : plain) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

std::string known_by_others_as(std::string_view word, const std::vector<std::string>& names) {
  const std::string plain = plain_word(word);
  for (const Thing& thing : kThings) {
    if (thing.here.empty() || !lists(thing.others, plain)) continue;
    const auto found = std::ranges::find(names, std::string(thing.here), plain_word);
    if (found != names.end()) return *found;
  }
  return "";
}

bool is_set_elsewhere(std::string_view word) {
  return std::ranges::any_of(
      kThings, [&](const Thing& thing) { return !thing.where.empty() && thing.here == plain_word(word); });
}

std::string where_set(std::string_view word) {
  const std::string plain = plain_word(word);
  if (plain.empty()) return "";
  for (const Thing& thing : kThings)
    if (!thing.where.empty() && (thing.here == plain || lists(thing.others, plain)))
      return std::string(thing.where);
  return "";
}

}  // namespace alpa

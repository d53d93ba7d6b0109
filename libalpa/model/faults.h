#pragma once
#include <string>
#include <vector>

#include "libalpa/model/definition.h"

namespace alpa {

/// Faults of a model, found after its files were read: one per place, so that a step that is repeated twelve
/// times is reported once.
class ModelFaults {
 public:
  struct Fault {
    SourceLocation place;
    std::string text;
  };

  void add(const SourceLocation&, std::string text);
  bool none() const { return faults_.empty(); }
  const std::vector<Fault>& all() const { return faults_; }

  /// Throws one Error(input) with a line "file:line:column: text" per fault, unless there is none.
  void throw_if_any(const std::vector<std::string>& sources) const;

 private:
  std::vector<Fault> faults_;
};

/// ", did you mean 'query'?" or "".
std::string suggestion(const std::string& wrong, const std::vector<std::string>& names);

}  // namespace alpa

#pragma once
#include <string>
#include <vector>

namespace alpa {

/// Counts what this program takes from the heap, in every thread: heap_watch.cpp stands in for malloc and its
/// kin, which operator new calls too.
namespace heap_watch {

/// A place in a program file (this program, or a shared library) that asked for memory. Standard libraries
/// ask for their callers.
struct Source {
  std::string file;  ///< its name without folders
  long allocations = 0;
  std::string stack;  ///< of the first time: one call per line, innermost first
};

void start();  ///< forgets what was counted
void stop();
std::vector<Source> sources();  ///< since start()

}  // namespace heap_watch
}  // namespace alpa

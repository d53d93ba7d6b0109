# Headers that most files read are parsed once, and reused by targets of the same compiler flags. Files include what they need
# all the same: cuda is built without this.

# alpa_precompiled(<name> HEADERS <headers...> [LINK <targets...>] [OPTIONS <compiler options...>])
function(alpa_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK;OPTIONS" ${ARGN})
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} alpa_flags)
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# alpa_precompile(<target> <name>)
function(alpa_precompile target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
  # What g++ 12 sees in std::string it reports where it no longer knows that the header is the system's.
  target_compile_options(${target} PRIVATE -Wno-array-bounds)
endfunction()

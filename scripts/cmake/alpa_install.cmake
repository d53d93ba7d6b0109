# cmake --install build/release --prefix PREFIX [--strip] [--component NAME], and cpack in a build folder:
#
#   commands    bin/, share/alpa/{blocks,report}                what runs
#   slurm       share/alpa/slurm, share/modulefiles/alpa        batch scripts; a module for Lmod and Environment Modules
#   examples    share/alpa/{configs,text}                       models, clusters, pins; a text to train on
#   documents   share/doc/alpa, share/man, bash-completion      for users; what the commands say of themselves; the licences
#
# The tree may be moved: commands find share/alpa beside their folder, the modulefile its prefix above itself, scripts the
# commands, and libraries that are put there in lib/. Other libraries are where the build has found them.

# The folders of share/alpa, in the source tree; apps/CMakeLists.txt makes links to them in the build folder.
set(ALPA_SHARED_FOLDERS share/blocks share/report share/text configs slurm)

set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # MPI and HDF5 of a module or of Spack are in no folder that the loader knows

# What is installed: the targets of the commands are known by then.
function(alpa_install)
  install(TARGETS ${ARGN} alpa-cbc RUNTIME DESTINATION bin COMPONENT commands)
  install(DIRECTORY share/blocks share/report DESTINATION share/alpa COMPONENT commands)
  install(DIRECTORY configs share/text DESTINATION share/alpa COMPONENT examples)
  install(DIRECTORY slurm DESTINATION share/alpa COMPONENT slurm USE_SOURCE_PERMISSIONS)
  install(FILES share/packaging/modulefile DESTINATION share/modulefiles/alpa RENAME ${PROJECT_VERSION} COMPONENT slurm)
  install(FILES LICENSE DESTINATION share/doc/alpa COMPONENT documents)
  file(GLOB documents CONFIGURE_DEPENDS *.md share/*.md share/doc/*.md)
  install(CODE "set(ALPA_DOCUMENTS \"${documents}\")\nset(ALPA_FLAT_FOLDER \"${PROJECT_BINARY_DIR}/documents/flat\")" COMPONENT documents)
  install(SCRIPT scripts/cmake/flatten_links.cmake COMPONENT documents)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/documents/flat/ DESTINATION share/doc/alpa COMPONENT documents)
  # The commands are asked for these when they are installed, so what is installed is what they say.
  foreach(command ${ARGN})
    install(CODE "
      foreach(form man bash)
        execute_process(COMMAND \"$<TARGET_FILE:${command}>\" --help-as \${form} COMMAND_ERROR_IS_FATAL ANY
                        OUTPUT_FILE \"${PROJECT_BINARY_DIR}/documents/${command}.\${form}\")
      endforeach()" COMPONENT documents)
    install(FILES ${PROJECT_BINARY_DIR}/documents/${command}.man DESTINATION share/man/man1 RENAME ${command}.1
            COMPONENT documents)
    install(FILES ${PROJECT_BINARY_DIR}/documents/${command}.bash DESTINATION share/bash-completion/completions
            RENAME ${command} COMPONENT documents)
  endforeach()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/documents)
endfunction()

# alpa-0.1.0-Linux-x86_64.tar.gz, with all of it: cpack --config build/release/CPackConfig.cmake
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_VENDOR "Alpa for Slurm")
set(CPACK_PACKAGE_FILE_NAME ${PROJECT_NAME}-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the authors of Alpa for Slurm")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # cpack -G DEB depends on the packages that the libraries are of
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "mpich, slurm-client")
include(CPack)

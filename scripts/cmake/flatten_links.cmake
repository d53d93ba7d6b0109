# Installed documents lie side by side, so links between them lose their folders: puts such copies of ALPA_DOCUMENTS in ALPA_FLAT_FOLDER.
file(REMOVE_RECURSE ${ALPA_FLAT_FOLDER})
foreach(document IN LISTS ALPA_DOCUMENTS)
  cmake_path(GET document FILENAME name)
  file(READ ${document} text)
  string(REGEX REPLACE "\\]\\((\\.\\./)*(share/)?(doc/)?([a-zA-Z-]+\\.md)" "](\\4" text "${text}")
  file(WRITE ${ALPA_FLAT_FOLDER}/${name} "${text}")
endforeach()

target_sources(heddle PRIVATE ${CMAKE_CURRENT_LIST_DIR}/selective_scan.cpp)
vulkan_shader(selective_scan)

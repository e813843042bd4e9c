target_sources(heddle PRIVATE ${CMAKE_CURRENT_LIST_DIR}/attend.cpp
  ${CMAKE_CURRENT_LIST_DIR}/attention_tile.cpp)
vulkan_shader(attend)
vulkan_shader(attend_join)

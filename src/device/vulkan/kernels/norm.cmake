target_sources(heddle PRIVATE ${CMAKE_CURRENT_LIST_DIR}/norm.cpp
  ${CMAKE_CURRENT_LIST_DIR}/group_norm.cpp ${CMAKE_CURRENT_LIST_DIR}/row_groups.cpp)
vulkan_shader(norm)
vulkan_shader(group_norm)

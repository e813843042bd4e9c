target_sources(heddle PRIVATE ${CMAKE_CURRENT_LIST_DIR}/attention.cpp)
vulkan_shader(attention)

target_sources(heddle PRIVATE ${CMAKE_CURRENT_LIST_DIR}/linear.cpp ${CMAKE_CURRENT_LIST_DIR}/products.cpp)
vulkan_shader(linear_scalar)
vulkan_shader(linear_vector)
vulkan_shader(linear_tiled)

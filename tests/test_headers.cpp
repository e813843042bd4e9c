// A program that precompiled headers can belong to.
int main() {}

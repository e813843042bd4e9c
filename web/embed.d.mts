export function cppSource(folder: string, names: string[]): string;

mod maps;
mod matrices;

mod card;
mod model;
mod streams;

mod card;
mod faulty_cards;
mod model;
mod moving;
mod recording;
mod scenario;
mod starving;
mod streams;

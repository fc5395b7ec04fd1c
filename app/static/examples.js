// What the page opens with, and what its "Try" buttons fill in.

// Sixty questions to a shop's support, as customers write them.
export const SUPPORT = `How do I reset my password?
I can't log in any more, it says my details are wrong
My account is locked after three failed attempts
How can I change the email address of my account?
Please delete my account and all my data
The verification code never arrives on my phone
Can two people share one account?
I get logged out every few minutes
How do I turn on two-step verification?
Someone else has signed in to my account
Where is my order?
My parcel says delivered but I never received it
The tracking number does not work
How long does delivery to Ireland take?
Can I change the delivery address after ordering?
Do you deliver on Saturdays?
My package has been stuck in customs for a week
I was not at home, when will the courier try again?
Can I pick up my order in a shop?
Is express shipping available?
How do I get a refund?
I want to send this jacket back
The shoes are too small, can I swap them for a larger size?
How long do I have to return something?
Who pays the postage for a return?
I returned the item two weeks ago and still have no money
Can I return a gift without the receipt?
The return label will not print
Can I cancel my order?
I ordered the wrong colour by mistake
I was charged twice for the same order
Why was my credit card declined?
Which payment methods do you accept?
Can I pay by bank transfer?
I need an invoice with my company's VAT number
My voucher code is not accepted
The price went down the day after I bought it
Do you charge a fee for paying in instalments?
There is a payment on my statement that I do not recognise
When will you take the money from my account?
The screen of my new phone is cracked
My headphones stopped working after a month
The battery does not charge any more
A part is missing from the box
The coffee machine leaks water
How do I claim the warranty?
The lamp flickers when I switch it on
My laptop gets very hot and loud
The zip of the bag broke on the first day
Can you send me the manual for this camera?
The app crashes when I open my basket
The website does not load on my phone
How do I turn off the notifications?
How do I turn on the notifications?
I cannot find the update in the app store
Photos that I upload look blurred
How do I cancel my subscription?
I want to pause my membership for two months
Can I switch from the monthly plan to the yearly plan?
How do I unsubscribe from your newsletter?`.split("\n");

export const QUESTIONS = ["forgot my login", "my package is late", "stop sending me messages", "the app keeps crashing", "I want my money back"];

// Texts with labels of one's own to choose from.
export const LABELLED = [
  { name: "a bill", text: "My credit card was charged twice, please send one payment back.", labels: ["billing", "delivery", "account", "broken product"] },
  { name: "a recipe", text: "Fry the onions until they are soft, then add the rice and the stock.", labels: ["cooking", "sports", "politics", "travel"] },
  { name: "news", text: "The central bank raised its interest rate by half a point.", labels: ["economy", "weather", "health", "football"] },
  { name: "a request", text: "Could you please call me back before five?", labels: ["a request", "a complaint", "praise"] },
  { name: "none of these", text: "The violin concerto was written in 1878.", labels: ["cooking", "sports", "politics"] },
];

// Texts for trained classifiers, by a label that the classifier has; `any` for others.
export const CLASSIFIED = {
  positive: ["The film is not without charm, but it never quite comes alive", "A gorgeous, witty, seductive movie.", "Two hours that feel like four."],
  person: ["Who painted the ceiling of the Sistine Chapel?", "How far is it from Denver to Aspen?", "What is the capital of Burkina Faso?"],
  "crude oil": ["OPEC said that oil output would stay at 15.8 million barrels a day.", "Shr 32 cts vs 28 cts, net 4.1 mln vs 3.6 mln.", "Japan and the United States met to discuss tariffs on semiconductors."],
  any: ["I was charged twice for the same order.", "Thank you, that was quick!"],
};

// What trained classifiers are for, by a label that the classifier has.
export const USES = {
  positive: { group: "The mood of a text", about: "Says how glad or angry a text is; best on reviews." },
  person: { group: "What a question asks for", about: "Reads questions, and says what kind of answer they want." },
  "crude oil": { group: "The topic of business news", about: "Reads news of companies and trade: on other texts its answer is a guess." },
};

// Pairs of sentences to compare.
export const PAIRS = [
  { name: "a contradiction", first: "Two kids at a ballgame wash their hands", second: "The children are asleep at home" },
  { name: "other words", first: "A man is playing the guitar on stage", second: "Somebody performs music for a crowd" },
  { name: "one number", first: "The ticket costs 450 euros", second: "The ticket costs 540 euros" },
  { name: "on and off", first: "Turn on the light in the kitchen", second: "Turn off the light in the kitchen" },
  { name: "who does what", first: "The dog chases the cat", second: "The cat chases the dog" },
];
